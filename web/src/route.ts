// The fragment of the address names the view and its content. The fragment never holds the token after the page has
// opened.

import { useEffect, useState } from "preact/hooks";

export const VIEWS = ["worksheet", "control", "pools", "proof"] as const;
export type ViewName = (typeof VIEWS)[number];

export interface Route {
  view: ViewName;
  options: URLSearchParams;
}

export function readRoute(hash: string): Route {
  const [name, query] = hash.replace(/^#/, "").split("?", 2);
  const view = VIEWS.find((one) => one === name) ?? "worksheet";
  return { view, options: new URLSearchParams(query ?? "") };
}

export function address(route: Route): string {
  // Brackets and commas are easier to read than their codes.
  const query = route.options.toString().replace(/%5B/g, "[").replace(/%5D/g, "]").replace(/%2F/g, "/");
  return `#${route.view}${query ? `?${query}` : ""}`;
}

/** Shows another view, or the same view with other content. */
export function go(route: Route, replace = false): void {
  if (replace) history.replaceState(null, "", address(route));
  else history.pushState(null, "", address(route));
  dispatchEvent(new Event("routed"));
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => readRoute(location.hash));
  useEffect(() => {
    const read = (): void => setRoute(readRoute(location.hash));
    for (const event of ["hashchange", "popstate", "routed"]) addEventListener(event, read);
    return () => {
      for (const event of ["hashchange", "popstate", "routed"]) removeEventListener(event, read);
    };
  }, []);
  return route;
}
