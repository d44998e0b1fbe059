import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import type { Feed } from "../model/feed";

/** Draws the component again when the feed has news. A hidden tab draws nothing until it is visible again. */
export function useFeed(feed: Feed): Feed {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => feed.listen(() => document.hidden || redraw(undefined)), [feed]);
  return feed;
}

export interface Size {
  width: number;
  height: number;
}

/** The size of an element, in CSS pixels. */
export function useSize<E extends Element>(): [{ current: E | null }, Size] {
  const ref = useRef<E>(null);
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      if (!entry) return;
      const { width, height } = entry.contentRect;
      setSize((old) => (old.width === width && old.height === height ? old : { width, height }));
    });
    if (ref.current) observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return [ref, size];
}

/** Whether the background is dark: by the reader's choice, or else by the system's setting. */
export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen === undefined ? matchMedia("(prefers-color-scheme: dark)").matches : chosen === "dark";
}

/** Draws the component again every `ms` milliseconds, as long as the tab is visible. */
export function useTick(ms: number): void {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || redraw(undefined), ms);
    return () => clearInterval(timer);
  }, [ms]);
}

/** Calls `press` for each key that the user presses while no field has the focus. */
export function useKeys(press: (key: string, event: KeyboardEvent) => boolean): void {
  const latest = useRef(press);
  latest.current = press;
  useEffect(() => {
    const listener = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement | null;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (target?.closest("input, select, textarea, dialog")) return;
      if ((event.key === " " || event.key === "Enter") && target?.closest("button, a")) return;
      if (latest.current(event.key, event)) event.preventDefault();
    };
    addEventListener("keydown", listener);
    return () => removeEventListener("keydown", listener);
  }, []);
}
