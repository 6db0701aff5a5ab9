// The page's connection to its server.
import { byId, say, setHidden } from "./dom.js";
import { page, tell } from "./page.js";
import { Server } from "./server.js";

export const server = new Server((isThere) => {
  const isBack = isThere && !byId("gone").hidden;
  setHidden(byId("gone"), isThere);
  page.isServed = isThere;
  if (isBack) say("The server is back.");
  tell("server");
});
