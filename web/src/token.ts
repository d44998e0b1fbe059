// The token arrives in the fragment of the address (or in its query, when the API's own address is opened). The page
// removes the token from the address at once, so that a copied address never holds it, and keeps the token for this
// tab.

const KEY = "dashpot-token";

/** Takes the token out of the address. If the address has none, returns the token that this tab has kept. */
export function takeToken(): string | null {
  const { hash, search, pathname } = location;
  const token = tokenIn(hash) ?? tokenIn(search);
  if (token === undefined) return kept();
  const rest = hash.replace(/(^#|&)token=[^&]*/, "").replace(/^[#&]+/, "");
  history.replaceState(null, "", pathname + (rest ? `#${rest}` : ""));
  keep(token);
  return token;
}

/** The token in an address, or in a part of one. */
export function tokenIn(text: string): string | undefined {
  return /(?:^|[?#&])token=([^&#\s]+)/.exec(text)?.[1];
}

/** Keeps a token for this tab. */
export function keep(token: string): void {
  try {
    sessionStorage.setItem(KEY, token);
  } catch {
    // If the browser stores nothing, the page asks for the token again after a reload.
  }
}

function kept(): string | null {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}
