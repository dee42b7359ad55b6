import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { downloadText } from './download.ts';

/** What the server has at a path, or where it leads from there. */
let served: Map<string, { readonly text: string } | { readonly to: string; readonly status?: number }>;
let requests: string[];
let server: Server;
let url: string;

beforeEach(async () => {
  requests = [];
  served = new Map();
  server = createServer(({ url: path = '' }, response) => {
    requests.push(path);
    const answer = served.get(path);
    if (answer === undefined) response.writeHead(404).end();
    else if ('text' in answer) response.end(answer.text);
    else response.writeHead(answer.status ?? 302, { location: answer.to }).end('elsewhere');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const ask = async (onRedirect: (to: URL) => void = () => undefined): Promise<string | undefined> =>
  await downloadText(`${url}/0`, { log: () => undefined, onRedirect });

/** So many redirects, and then a text. */
function serveRedirects(count: number): void {
  for (let i = 0; i < count; i++)
    served.set(`/${i}`, { to: `/${i + 1}`, status: [301, 302, 303, 307, 308][i % 5] ?? 302 });
  served.set(`/${count}`, { text: 'found' });
}

test('redirects are followed, and each of them is looked at first', async () => {
  serveRedirects(5);
  const seen: string[] = [];

  expect(await ask(({ href }) => void seen.push(href))).toBe('found');
  expect(seen).toEqual([1, 2, 3, 4, 5].map((i) => `${url}/${i}`));
});

test('a redirect that may not be followed is not', async () => {
  served.set('/0', { to: '/1' });
  served.set('/1', { to: 'http://127.attacker.example/x' });
  const refusal = new Error('not there');

  await expect(
    ask(({ hostname }) => {
      if (hostname !== '127.0.0.1') throw refusal;
    }),
  ).rejects.toMatchObject({ cause: refusal });
  expect(requests).toEqual(['/0', '/1']);
});

test.each([
  { what: 'too many', prepare: () => serveRedirects(6), says: 'more than 5 redirects' },
  { what: 'a file', prepare: () => void served.set('/0', { to: 'file:///etc/passwd' }), says: 'no plain http' },
  { what: 'a text of its own', prepare: () => void served.set('/0', { to: 'data:,x' }), says: 'no plain http' },
  { what: 'a user name', prepare: () => void served.set('/0', { to: 'http://a:b@127.0.0.1/' }), says: 'no plain http' },
])('a redirect to $what fails', async ({ prepare, says }) => {
  prepare();

  await expect(ask()).rejects.toMatchObject({ code: 'download-failed', message: expect.stringContaining(says) });
});
