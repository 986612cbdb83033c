// Socket.IO in the version that its only argument names. bench/README.md describes the requests that every peer serves.
'use strict';
const http = require('node:http');

const BACKLOG = 4096;
const version = process.argv[2];

const server = http.createServer((request, response) => {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    // Each line is a room, a tab, a payload.
    for (const line of Buffer.concat(parts).toString().split('\n')) {
      const tab = line.indexOf('\t');
      if (tab > 0) io.to(line.slice(0, tab)).emit('CHAT', line.slice(tab + 1));
    }
    response.writeHead(204).end();
  });
});

const io = require(`socket.io-${version}`)(server, {
  pingInterval: 25_000,
  pingTimeout: 60_000,
  serveClient: false,
  // The only websocket engine of 2.5.1; 2.0.3 would try a native one first.
  wsEngine: 'ws',
});
io.on('connection', (socket) => socket.join(socket.handshake.query.room));

server.listen(0, '127.0.0.1', BACKLOG, () => {
  console.log(JSON.stringify({ baseUrl: `http://127.0.0.1:${server.address().port}` }));
});
