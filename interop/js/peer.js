'use strict';
// One version of socket.io-client, driven line by line by py/matrix.py, which describes the lines.
//
//   node peer.js CLIENT        an alias of package.json, or the folder of an installed package
const { createInterface } = require('node:readline');

const io = require(process.argv[2]);
const connect = io.connect ?? io;
const sockets = new Map();

const TRANSPORTS = {
  websocket: { transports: ['websocket'] },
  polling: { transports: ['polling'] },
  upgrade: {}, // the client's default: polling, then websocket
  base64: { transports: ['polling'], forceBase64: true },
};

function tell(id, line) {
  // Escaped to ASCII, so that no encoding on the way can change a character.
  const ascii = JSON.stringify({ id, ...line }).replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  process.stdout.write(`${ascii}\n`);
}

function open({ id, url, transport, events }) {
  const socket = connect(url, { reconnection: false, forceNew: true, 'force new connection': true, ...TRANSPORTS[transport] });
  sockets.set(id, socket);
  socket.on('connect', () => tell(id, { state: 'connect' }));
  socket.on('disconnect', (reason) => tell(id, { state: 'disconnect', detail: String(reason) }));
  for (const name of ['connect_error', 'error']) {
    socket.on(name, (error) => tell(id, { state: name, detail: String(error?.message ?? error) }));
  }
  for (const event of events) socket.on(event, (...args) => tell(id, { event, args }));
}

console.log('{"ready": true, "ordered": true}');
createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { ask, ...rest } = JSON.parse(line);
    if (ask === 'open') open(rest);
    if (ask === 'transport') {
      const { name, query } = sockets.get(rest.id).io.engine.transport;
      tell(rest.id, { transport: name, revision: String(query.EIO) });
    }
    if (ask === 'leave') sockets.get(rest.id).close();
  })
  .on('close', () => process.exit(0));
