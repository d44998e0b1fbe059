import { useEffect, useState } from "preact/hooks";
import type { Feed, Source } from "./model/feed";
import { go, type Route, useRoute, VIEWS, type ViewName } from "./route";
import { keep, tokenIn } from "./token";
import { Help } from "./ui/help";
import { isDark, useFeed, useKeys, useTick } from "./ui/hooks";
import { Rail } from "./ui/rail";
import { turnTheme } from "./ui/theme";
import { Control } from "./views/control";
import { Pools } from "./views/pools";
import { Proof } from "./views/proof";
import { Worksheet } from "./views/worksheet";
import { capitalized, clock, cut, lasting } from "./words";

const TITLES: Record<ViewName, string> = { worksheet: "Worksheet", control: "Control", pools: "Pools", proof: "Proof" };
const JUMPS: Record<string, ViewName> = { w: "worksheet", c: "control", p: "pools", r: "proof" };

export function App({ feed }: { feed: Feed }) {
  useFeed(feed);
  const route = useRoute();
  const [help, setHelp] = useState(false);
  const [menu, setMenu] = useState(false);
  const [going, setGoing] = useState(false);
  const [dark, setDark] = useState(isDark());
  useEffect(() => {
    document.title = `dashpot: ${TITLES[route.view]}`;
    setMenu(false);
  }, [route]);
  const turn = (): void => {
    turnTheme(dark);
    setDark(!dark);
  };
  useKeys((key) => {
    const jump = going ? JUMPS[key] : undefined;
    setGoing(key === "g");
    if (jump) go({ view: jump, options: new URLSearchParams() });
    else if (key === "?") setHelp(!help);
    else if (key === "t") turn();
    else return key === "g";
    return true;
  });
  return (
    <div class={`app view-${route.view} ${menu ? "menu-open" : ""}`}>
      <header class="top">
        <button class="menu plain" aria-label="Sources" aria-expanded={menu} onClick={() => setMenu(!menu)}>
          ≡
        </button>
        <a class="brand" href="#worksheet">
          <Mark />
          dashpot
        </a>
        <nav aria-label="Views">
          {VIEWS.filter((view) => view === "worksheet" || feed.source?.kind === "daemon").map((view) => (
            <a key={view} href={`#${view}`} aria-current={view === route.view ? "page" : undefined}>
              {TITLES[view]}
            </a>
          ))}
        </nav>
        <span class="space" />
        <Contact feed={feed} />
        <button class="plain theme" aria-label={dark ? "Light theme" : "Dark theme"} title="Light or dark (t)" onClick={turn}>
          ◐
        </button>
        <button class="keys" onClick={() => setHelp(true)}>
          Keys ?
        </button>
      </header>
      <Trouble feed={feed} />
      <Body feed={feed} route={route} dark={dark} />
      {help && <Help close={() => setHelp(false)} />}
    </div>
  );
}

function Body({ feed, route, dark }: { feed: Feed; route: Route; dark: boolean }) {
  if (feed.source === null || feed.past === null || feed.past.to === 0)
    return <main class="empty">{feed.contact.kind === "refused" ? null : <p>Waiting for the first second…</p>}</main>;
  if (route.view !== "worksheet" && feed.status === null)
    return (
      <main class="empty">
        <p>
          {TITLES[route.view]} is for the disks of a daemon. This page shows {sourceWords(feed.source)}.{" "}
          <a href="#worksheet">Open its worksheet</a>
        </p>
      </main>
    );
  return (
    <>
      {route.view === "worksheet" && <Rail feed={feed} route={route} />}
      {route.view === "worksheet" && <Worksheet feed={feed} route={route} dark={dark} />}
      {route.view === "control" && <Control feed={feed} />}
      {route.view === "pools" && <Pools feed={feed} />}
      {route.view === "proof" && <Proof feed={feed} />}
    </>
  );
}

function Mark() {
  return (
    <svg
      class="mark"
      width="18"
      height="14"
      viewBox="0 0 18 14"
      fill="none"
      stroke="currentColor"
      stroke-width="1.4"
      aria-hidden="true"
    >
      <path d="M0 7h7M7 4v6M4.5 1.5h8v11h-8M12.5 7H18" />
    </svg>
  );
}

/** The source of the page's figures, in words. */
function sourceWords({ kind, name }: Source): string {
  if (kind === "kernel") return "the kernel’s disks";
  return kind === "daemon" ? "a daemon" : `the ${kind} ${cut(name, 60)}`;
}

/** Says in words whether the page has contact with its source; the dot shows the same by its colour. */
function Contact({ feed }: { feed: Feed }) {
  useTick(1_000);
  const { contact } = feed;
  const words = {
    connecting: "connecting…",
    live: feed.hasEnded ? "ended" : "live",
    lost: "no contact",
    refused: "refused",
  }[contact.kind];
  return (
    <span class={`contact ${contact.kind}`}>
      <i aria-hidden="true" />
      {words}
      {contact.kind === "live" && !feed.hasEnded && (
        <small> {((Date.now() - feed.answeredAt) / 1_000 + 0.1).toFixed(1)} s behind</small>
      )}
    </span>
  );
}

/** Says why the page has no contact with its source, and what the reader can do. */
function Trouble({ feed }: { feed: Feed }) {
  useTick(1_000);
  const { contact } = feed;
  if (contact.kind === "refused") return <TokenForm feed={feed} />;
  if (contact.kind === "lost") {
    const left = Math.max(0, Math.ceil((contact.retryAt - Date.now()) / 1_000));
    return (
      <p class="trouble" role="alert">
        <b>No contact</b> for {lasting((Date.now() - contact.since) * 1e6)} ({contact.why}), next try in {left} s.
        {feed.answeredAt > 0 && ` The page shows the time up to ${clock(feed.answeredAt)}.`}{" "}
        <button class="link" onClick={() => feed.soon(0)}>
          Try now
        </button>
      </p>
    );
  }
  const { source } = feed;
  if (source?.trouble) {
    return (
      <p class="trouble" role="alert">
        <b>{source.kind === "recording" ? "The recording cannot be read any more" : "The watch has ended"}:</b> {source.trouble}.
        The page shows the time up to {clock(feed.past!.wall(feed.past!.to))}.
      </p>
    );
  }
  if (source && source.kind !== "daemon" && !feed.outdated) {
    const ended =
      source.ended_ns == null ? "" : ` It ended at ${clock(feed.past!.wall(source.ended_ns / 1e9))} and is shown to its end.`;
    return (
      <p class="source-line">
        {capitalized(sourceWords(source))}.{ended}
      </p>
    );
  }
  if (!feed.outdated) return null;
  return (
    <p class="trouble" role="alert">
      The daemon was replaced by another version, and this page belongs to the version before it.{" "}
      <button class="link" onClick={() => location.reload()}>
        Reload
      </button>
    </p>
  );
}

function TokenForm({ feed }: { feed: Feed }) {
  const [text, setText] = useState("");
  if (feed.contact.kind !== "refused") return null;
  const { status, why, remedy } = feed.contact;
  const use = (event: Event): void => {
    event.preventDefault();
    const token = tokenIn(text) ?? text.trim();
    keep(token);
    feed.useToken(token);
  };
  if (status !== 401)
    return (
      <p class="trouble" role="alert">
        <b>{why}.</b> {remedy}
      </p>
    );
  return (
    <form class="trouble" aria-live="assertive" onSubmit={use}>
      <b>{feed.api.token === null ? "This link has no token." : "This link’s token is not the daemon’s."}</b> Take the link that{" "}
      <code>dashpot</code> printed after “page”: each start makes a new token. If you have set a token, give that.
      <label>
        Link or token{" "}
        <input value={text} autoComplete="off" spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <button disabled={text.trim() === ""}>Use it</button>
    </form>
  );
}
