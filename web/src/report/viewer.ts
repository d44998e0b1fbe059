// The viewer in a report's file: the data as a table that sorts, and one of its figures over time. The viewer loads
// nothing from any host, and writes every word as a text node.

type Row = Record<string, string | number | boolean | null>;

/** A record as rows: a row for each object of the innermost list, with the plain facts around the list. */
function rowsOf(value: unknown, around: Row = {}): Row[] {
  if (Array.isArray(value)) return value.flatMap((one) => rowsOf(one, around));
  if (typeof value !== "object" || value === null) return [];
  const row: Row = { ...around };
  const lists: [string, unknown[]][] = [];
  const put = (object: object, before: string): void => {
    for (const [key, one] of Object.entries(object)) {
      if (Array.isArray(one)) {
        if (one.some((each) => typeof each === "object" && each !== null)) lists.push([key, one]);
      } else if (typeof one === "object" && one !== null) put(one, `${before}${key}.`);
      else row[before + key] = one as Row[string];
    }
  };
  put(value, "");
  const rows = lists.flatMap(([, list]) => rowsOf(list, row));
  return rows.length > 0 ? rows : [row];
}

function make<K extends keyof HTMLElementTagNameMap>(name: K, words = "", className = ""): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  made.textContent = words;
  if (className) made.className = className;
  return made;
}

function shown(value: Row[string] | undefined): string {
  if (value === undefined || value === null) return "–";
  return typeof value === "number" ? String(value).replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, "\u2009") : String(value);
}

function table(place: Element, rows: Row[], columns: string[]): void {
  const isNumber = (column: string): boolean =>
    rows.every((row) => row[column] === undefined || row[column] === null || typeof row[column] === "number");
  let order = 0;
  let sorted: string | null = null;
  const draw = (): void => {
    const list = [...rows];
    if (sorted !== null)
      list.sort(
        (a, b) =>
          order *
          ((a[sorted!] ?? -Infinity) < (b[sorted!] ?? -Infinity)
            ? -1
            : (a[sorted!] ?? -Infinity) > (b[sorted!] ?? -Infinity)
              ? 1
              : 0),
      );
    const all = make("table");
    const head = all.createTHead().insertRow();
    for (const column of columns) {
      const cell = make("th", "", isNumber(column) ? "" : "word");
      cell.scope = "col";
      if (column === sorted) cell.ariaSort = order > 0 ? "ascending" : "descending";
      const button = make("button", column);
      button.addEventListener("click", () => {
        [order, sorted] = [sorted === column ? -order : -1, column];
        draw();
      });
      cell.append(button);
      head.append(cell);
    }
    const body = all.createTBody();
    for (const row of list.slice(0, ROWS)) {
      const line = body.insertRow();
      for (const column of columns) line.append(make("td", shown(row[column]), isNumber(column) ? "" : "word"));
    }
    place.replaceChildren(all);
    if (list.length > ROWS) place.append(make("p", `${list.length - ROWS} more rows are in the data.`));
  };
  draw();
}

const SVG = "http://www.w3.org/2000/svg";
const LINES = 8;
const ROWS = 500;

/** Draws one figure over the intervals, with a line for each value of one column: the first column of words, times
 *  excepted, that has several values. */
function figure(place: Element, rows: Row[], names: string[], words: string[]): void {
  const select = make("select");
  for (const name of names) select.append(make("option", name));
  select.ariaLabel = "Figure";
  const by = words.find((word) => new Set(rows.map((row) => row[word])).size > 1 && !/time|start|at$/.test(word)) ?? null;
  const frame = make("div", "", "figure");
  const said = make("p", "", "said");
  said.setAttribute("role", "status");
  const draw = (): void => {
    const lines = new Map<string, number[]>();
    for (const row of rows) {
      const value = row[select.value];
      if (typeof value !== "number") continue;
      const key = by === null ? "" : shown(row[by]);
      lines.set(key, [...(lines.get(key) ?? []), value]);
    }
    const kept = [...lines].slice(0, LINES);
    const width = Math.max(2, ...kept.map(([, values]) => values.length));
    const top = Math.max(1e-9, ...kept.flatMap(([, values]) => values));
    const picture = document.createElementNS(SVG, "svg");
    picture.setAttribute("viewBox", `0 0 ${width - 1} 1.05`);
    picture.setAttribute("preserveAspectRatio", "none");
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", `${select.value}, up to ${shown(top)}`);
    kept.forEach(([, values], at) => {
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("class", `k${at}`);
      path.setAttribute("d", values.map((value, index) => `${index === 0 ? "M" : "L"}${index} ${1.05 - value / top}`).join(""));
      picture.append(path);
    });
    const cursor = document.createElementNS(SVG, "line");
    cursor.setAttribute("y2", "1.05");
    picture.append(cursor);
    const say = (at: number | null): void => {
      said.replaceChildren();
      said.append(at === null ? `up to ${shown(top)}` : `interval ${at + 1}`);
      kept.forEach(([key, values], index) => {
        said.append(make("i", "", `key k${index}`), `${key} ${at === null ? "" : shown(values[at])}`);
      });
      if (lines.size > LINES) said.append(`; ${lines.size - LINES} more are in the table`);
    };
    picture.addEventListener("pointermove", (event) => {
      const box = picture.getBoundingClientRect();
      const at = Math.min(width - 1, Math.max(0, Math.round(((event.clientX - box.left) / box.width) * (width - 1))));
      for (const x of ["x1", "x2"]) cursor.setAttribute(x, String(at));
      say(at);
    });
    picture.addEventListener("pointerleave", () => say(null));
    frame.classList.toggle("alone", kept.length === 1);
    frame.replaceChildren(picture);
    say(null);
  };
  select.addEventListener("change", draw);
  place.append(select, frame, said);
  draw();
}

const rows = rowsOf(JSON.parse(document.getElementById("data")?.textContent ?? "[]"));
const columns = [...new Set(rows.flatMap(Object.keys))].filter((column) => rows.some((row) => row[column] !== null));
const place = document.getElementById("table");
const over = document.getElementById("figure");
if (place && over && rows.length > 0) {
  const numbers = columns.filter(
    (column) =>
      rows.some((row) => typeof row[column] === "number") && !/(^|[._])(start|end|at|unix|time)(_ns|_s|_ms)?$/.test(column),
  );
  const varying = numbers.filter((column) => new Set(rows.map((row) => row[column])).size > 1);
  table(place, rows, columns);
  if (rows.length > 2 && varying.length > 0)
    figure(
      over,
      rows,
      varying,
      columns.filter((column) => rows.some((row) => typeof row[column] === "string")),
    );
  else over.remove();
}
