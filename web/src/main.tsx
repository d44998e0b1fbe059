import "./style.css";
import { render } from "preact";
import { Api } from "./api";
import { App } from "./app";
import { Feed } from "./model/feed";
import { keep, takeToken } from "./token";
import { restoreTheme } from "./ui/theme";

restoreTheme();
const feed = new Feed(new Api(takeToken()));
// A new link that is opened in this tab brings a new token.
addEventListener("hashchange", () => {
  const before = feed.api.token;
  const token = takeToken();
  if (token !== null && token !== before) {
    keep(token);
    feed.useToken(token);
  }
});
const root = document.getElementById("page");
if (root) render(<App feed={feed} />, root);
feed.start();
