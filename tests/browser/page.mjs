// Serves a page from another origin, has Chromium open it, and waits for what it says of its attempts.
import { spawn } from "node:child_process";
import { createServer } from "node:http";

const [port, profile] = process.argv.slice(2);
const call = {
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: {
    name: "demo__echo",
    arguments: { text: "from a page" },
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
      "io.modelcontextprotocol/clientInfo": { name: "page", version: "1" },
    },
  },
};
const headers = {
  "Content-Type": "application/json",
  Accept: "application/json, text/event-stream",
  "MCP-Protocol-Version": "2026-07-28",
  "Mcp-Method": "tools/call",
  "Mcp-Name": "demo__echo",
};

// Whoever is no page is served: the attempts below fail for being made by one, and for nothing else.
const listed = await fetch(`http://127.0.0.1:${port}/mcp`, {
  method: "POST",
  headers: { ...headers, "Mcp-Method": "tools/list", "Mcp-Name": "" },
  body: JSON.stringify({ ...call, method: "tools/list" }),
});
const tools = (await listed.json()).result.tools;
call.params.name = headers["Mcp-Name"] = tools[0].name;
const served = await fetch(`http://127.0.0.1:${port}/mcp`, { method: "POST", headers, body: JSON.stringify(call) });
if (served.status !== 200 || (await served.json()).error) throw new Error("a client that is no page is not served");

const attempts = `
const call = ${JSON.stringify(call)}, headers = ${JSON.stringify(headers)}, body = JSON.stringify(call);
const at = [];
for (const host of ["127.0.0.1", "localhost", "[::1]", "evil.test"]) {
  for (const path of ["/mcp", "/servers/demo/mcp", "/api/v1/calls", "/api/v1/approvals"]) {
    at.push("http://" + host + ":${port}" + path);
  }
}
const said = {};
const attempt = async (name, work) => {
  try { said[name] = await work(); } catch (error) { said[name] = "refused: " + error; }
};
const works = [];
for (const url of at) {
  works.push(attempt("json " + url, async () => "read: " + (await fetch(url, { method: "POST", headers, body })).status));
  works.push(attempt("plain " + url, async () => "read: " + (await fetch(url, { method: "POST", body })).status));
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
    works.push(attempt("blind " + type + " " + url, async () => {
      await fetch(url, { method: "POST", mode: "no-cors", headers: { "Content-Type": type }, body });
      return "sent blindly";
    }));
  }
  works.push(attempt("blind json " + url, async () => {
    await fetch(url, { method: "POST", mode: "no-cors", headers: { "Content-Type": "application/json" }, body });
    return "sent blindly";
  }));
  works.push(attempt("beacon " + url, async () => String(navigator.sendBeacon(url, new Blob([body], { type: "text/plain" })))));
  works.push(attempt("get " + url, async () => "read: " + (await fetch(url)).status));
  works.push(attempt("events " + url, () => new Promise((done) => {
    const source = new EventSource(url);
    source.onopen = () => done("read: open");
    source.onerror = () => { source.close(); done("refused"); };
  })));
  works.push(attempt("socket " + url, () => new Promise((done) => {
    const socket = new WebSocket(url.replace("http", "ws"));
    socket.onopen = () => done("read: open");
    socket.onerror = () => done("refused");
  })));
  // A form in a frame, as pages sent things before there was fetch.
  const frame = document.createElement("iframe");
  frame.name = "f" + Math.random();
  document.body.append(frame);
  const form = document.createElement("form");
  Object.assign(form, { method: "POST", action: url, enctype: "text/plain", target: frame.name });
  const input = document.createElement("input");
  Object.assign(input, { name: body.slice(0, -1) + ',"x":"', value: '"}' });
  form.append(input);
  document.body.append(form);
  form.submit();
}
Promise.all(works).then(() => new Promise((done) => setTimeout(done, 500)))
  .then(() => fetch("/said", { method: "POST", body: JSON.stringify(said) }));
`;

const said = await new Promise((resolve, reject) => {
  const page = createServer((request, response) => {
    if (request.url === "/said") {
      let body = "";
      request.on("data", (chunk) => (body += chunk));
      request.on("end", () => {
        response.end();
        page.close();
        page.closeAllConnections();
        chromium.once("exit", () => resolve(JSON.parse(body)));
        chromium.kill();
      });
    } else {
      response.setHeader("Content-Type", "text/html");
      response.end(`<!doctype html><title>x</title><body><script>${attempts}</script></body>`);
    }
  });
  let chromium;
  page.listen(0, "127.0.0.1", () => {
    chromium = spawn("chromium", [
      "--headless=new", "--no-sandbox", "--disable-gpu", `--user-data-dir=${profile}`, "--no-first-run",
      // A name of somebody else that leads here, as after a rebinding of its address.
      "--host-resolver-rules=MAP evil.test 127.0.0.1",
      `http://evil.test:${page.address().port}/`,
    ], { stdio: ["ignore", "ignore", "pipe"] });
    let errors = "";
    chromium.stderr.on("data", (chunk) => (errors = (errors + chunk).slice(-4000)));
    chromium.on("error", reject);
    chromium.on("exit", (code) => code && reject(new Error(`Chromium ended with ${code}: ${errors}`)));
  });
  setTimeout(() => reject(new Error("the page said nothing for a minute")), 60000).unref();
});

const read = Object.entries(said).filter(([, outcome]) => outcome.startsWith("read"));
const attempted = Object.keys(said).length;
if (attempted < 100) throw new Error(`only ${attempted} attempts were made`);
if (read.length > 0) throw new Error(`a page could read answers: ${JSON.stringify(read)}`);
console.log(`${attempted} attempts of a page, none of which could read an answer`);
process.exit(0);
