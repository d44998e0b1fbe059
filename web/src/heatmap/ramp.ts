// Ramps of colours: 256 entries, linear in OKLCH between five points, for light and for dark backgrounds. The
// more I/Os a colour stands for, the more its lightness differs from the background, so the order can be seen
// with any kind of colour blindness, and in a grey print.

/** Lightness, chroma, hue. */
type Point = readonly [number, number, number];

const LIGHT: Point[] = [
  [0.855, 0.052, 202],
  [0.75, 0.082, 213],
  [0.615, 0.105, 235],
  [0.44, 0.115, 258],
  [0.235, 0.07, 272],
];
const DARK: Point[] = [
  [0.385, 0.055, 245],
  [0.49, 0.085, 232],
  [0.62, 0.1, 205],
  [0.79, 0.105, 165],
  [0.955, 0.085, 108],
];
const GREY_LIGHT: Point[] = [
  [0.9, 0.005, 250],
  [0.58, 0.005, 250],
];
const GREY_DARK: Point[] = [
  [0.3, 0.005, 250],
  [0.54, 0.005, 250],
];

/** Red, green and blue of 256 entries. */
export type Ramp = Uint8ClampedArray;

/** The ramp of counts. A greyed ramp lets a highlighted value stand out. */
export function ramp(dark: boolean, greyed = false): Ramp {
  if (greyed) return between(dark ? GREY_DARK : GREY_LIGHT);
  return between(dark ? DARK : LIGHT);
}

/** The ramp of one hue: its colour is in the middle, and the ends are lighter and darker. */
export function hueRamp(colour: string, dark: boolean): Ramp {
  const [l, c, h] = oklch(colour);
  const ends: Point[] = [
    [dark ? l * 0.72 : Math.min(0.9, l + 0.18), c * 0.75, h],
    [l, c, h],
    [dark ? Math.min(0.95, l + 0.14) : l * 0.62, c * 0.85, h],
  ];
  return between(ends);
}

function between(points: Point[]): Ramp {
  const ramp = new Uint8ClampedArray(256 * 3);
  for (let at = 0; at < 256; at += 1) {
    const place = (at / 255) * (points.length - 1);
    const low = Math.min(Math.floor(place), points.length - 2);
    const share = place - low;
    const [a, b] = [points[low]!, points[low + 1]!];
    const mix = (part: 0 | 1 | 2): number => a[part] + (b[part] - a[part]) * share;
    ramp.set(toRgb(mix(0), mix(1), mix(2)), at * 3);
  }
  return ramp;
}

function toRgb(lightness: number, chroma: number, hue: number): [number, number, number] {
  const angle = (hue * Math.PI) / 180;
  const [a, b] = [chroma * Math.cos(angle), chroma * Math.sin(angle)];
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    encode(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    encode(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    encode(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

function encode(linear: number): number {
  const clipped = Math.min(1, Math.max(0, linear));
  const value = clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055;
  return Math.round(value * 255);
}

function oklch(colour: string): Point {
  const [r, g, b] = [1, 3, 5].map((at) => decode(parseInt(colour.slice(at, at + 2), 16) / 255)) as [number, number, number];
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  const lightness = 0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s;
  const u = 1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s;
  const v = 0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s;
  return [lightness, Math.hypot(u, v), (Math.atan2(v, u) * 180) / Math.PI];
}

function decode(value: number): number {
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
}
