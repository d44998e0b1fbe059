// The daemon's API: typed requests, with the token as a header.

import type { components } from "../build/openapi";

export type Schemas = components["schemas"];

/** The daemon refused a request, and said why. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    error: string,
    readonly remedy: string | null,
  ) {
    super(error);
  }
}

/** The daemon sent no answer. */
export class NoContact extends Error {}

const PATIENCE_MS = 8_000;

export class Api {
  constructor(public token: string | null) {}

  get<T>(path: string, signal?: AbortSignal): Promise<T> {
    return this.send<T>("GET", path, undefined, signal);
  }

  async send<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
    const headers: Record<string, string> = {};
    if (this.token !== null) headers.Authorization = `Bearer ${this.token}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const patience = AbortSignal.timeout(PATIENCE_MS);
    const answer = await fetch(path, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, patience]) : patience,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    }).catch((error: unknown) => {
      throw new NoContact(String(error));
    });
    return this.read<T>(answer);
  }

  /** Opens a stream. The caller reads it until the stream ends or the caller aborts it. */
  async open(path: string, body: unknown, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const headers: Record<string, string> = { "Content-Type": "application/json" };
    if (this.token !== null) headers.Authorization = `Bearer ${this.token}`;
    const answer = await fetch(path, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
      signal,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
    if (!answer.ok || !answer.body) await this.read<never>(answer);
    return answer.body!;
  }

  private async read<T>(answer: Response): Promise<T> {
    const said: unknown = await answer.json().catch(() => null);
    if (answer.ok) return said as T;
    const { error, remedy } = (said ?? {}) as Partial<Schemas["Error"]>;
    throw new Refused(answer.status, error ?? `the daemon answered ${answer.status}`, remedy ?? null);
  }
}

/** Asks for a change, and then shows `done`: words or, for a power cut, a function that makes words from the answer.
 *  Returns whether the request succeeded. */
export type Send = (
  method: string,
  path: string,
  body: unknown,
  done: string | ((crashed: Schemas["Crashed"]) => string),
) => Promise<boolean>;

/** Encodes a name as a part of a URL's path. */
export const part = encodeURIComponent;
