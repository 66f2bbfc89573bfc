// A bolt in JavaScript: every word in capitals. Reads messages that come in any pieces.
const fs = require("fs");
const path = require("path");

let text = "";
let started = false;

function send(message) {
  process.stdout.write(JSON.stringify(message) + "\nend\n");
}

function take(message) {
  if (!started) {
    started = true;
    fs.writeFileSync(path.join(message.pidDir, String(process.pid)), "");
    send({ pid: process.pid });
  } else if (Array.isArray(message)) {
    return; // who got a tuple
  } else if (message.stream === "__heartbeat") {
    send({ command: "sync" });
  } else {
    const values = [message.tuple[0].toUpperCase()];
    send({ command: "emit", anchors: [message.id], tuple: values, need_task_ids: false });
    send({ command: "ack", id: message.id });
  }
}

process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk) => {
  text += chunk;
  const parts = text.split("\nend\n");
  text = parts.pop();
  parts.forEach((part) => take(JSON.parse(part)));
});
process.stdin.on("end", () => process.exit(0));
