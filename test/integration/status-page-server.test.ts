import { connect as open } from 'node:net';

import { describe, expect, test } from '@jest/globals';

import { SECURITY_HEADERS } from '../../pkg/status-page/status-page.ts';
import { connect } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { fleetOf, workOf } from '../status-page/fleet-of-many.ts';
import { hourOf, servePage, type Shown, WELL } from '../status-page/served-page.ts';
import { MAX_READERS } from '../../pkg/status-page/event-stream.ts';
import type { Changes } from '../../pkg/status-page/view.ts';
import { freePort } from '../../hack/control-plane/ports.ts';
import { Program } from '../e2e/program.ts';

function shown(pools = 2, size = 3): Shown {
  const objects = fleetOf(pools, size);
  return { objects, work: workOf(objects), process: WELL, history: hourOf(pools * size) };
}

/** Answers to a request as it is typed, of a server that closes after it. */
function ask(port: number, path: string, headers: Readonly<Record<string, string>>, method = 'GET'): Promise<string> {
  const lines = Object.entries({ Connection: 'close', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = open(port, '127.0.0.1', () => socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`));
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => (answer += text));
    socket.on('error', reject);
    socket.on('close', () => resolve(answer));
  });
}

/** A reader of events, as a browser is one. */
async function follow(
  url: string,
): Promise<AsyncDisposable & { readonly changes: Changes[]; readonly status: number; readonly ended: Promise<void> }> {
  const leaving = new AbortController();
  const { status, body } = await fetch(`${url}events`, { signal: leaving.signal });
  const changes: Changes[] = [];
  const ended = (async () => {
    let text = '';
    try {
      for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) {
        text += part;
        const events = text.split('\n\n');
        text = events.pop() ?? '';
        for (const event of events) if (event.startsWith('data: ')) changes.push(JSON.parse(event.slice(6)) as Changes);
      }
    } catch (err) {
      if (!leaving.signal.aborted) throw err;
    }
  })();
  return {
    changes,
    status,
    ended,
    async [Symbol.asyncDispose]() {
      leaving.abort();
      await ended;
    },
  };
}

describe('the server of the status page', () => {
  test('serves the page and what it loads with headers that forbid all else, and changes nothing', async () => {
    await using page = await servePage(shown());

    for (const file of ['', 'status-page/web/main.ts', 'status-page/web/style.css', 'status-page/web/icon.svg']) {
      const { status, headers } = await fetch(`${page.url}${file}`);
      expect(status).toBe(200);
      for (const [name, value] of Object.entries(SECURITY_HEADERS)) expect(headers.get(name)).toBe(value);
    }
    const policy = (await fetch(page.url)).headers.get('content-security-policy');
    expect(policy).toMatch(
      /^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; /,
    );
    expect(policy).not.toMatch(/unsafe|\*/);
    const statuses = await Promise.all(
      ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'].map(async (method) => (await fetch(page.url, { method })).status),
    );
    expect(statuses).toEqual([405, 405, 405, 405, 405]);
    const head = await fetch(page.url, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });

  test('leads to the page from above by relative addresses, and knows no other path', async () => {
    await using page = await servePage(shown());
    const origin = `http://127.0.0.1:${page.port}`;
    const to = async (path: string): Promise<string | null> =>
      (await fetch(`${origin}${path}`, { redirect: 'manual' })).headers.get('location');

    expect([await to('/'), await to('/ui')]).toEqual(['ui/', './ui/']);
    const paths = [
      '/ui/other',
      '/ui/../../package.json',
      '/ui/status-page/web/../snapshot.ts',
      '/ui/%2e%2e/x',
      '/other',
    ];
    for (const path of paths) expect(await ask(page.port, path, { Host: 'localhost' })).toMatch(/^HTTP\/1\.1 404 /);
  });

  test('refuses who was led here by a name of another, and other sites that read events', async () => {
    await using page = await servePage(shown());

    const foreign = await ask(page.port, '/ui/', { Host: `evil.example:${page.port}` });
    const events = await ask(page.port, '/ui/events', { Host: 'localhost', 'Sec-Fetch-Site': 'cross-site' });
    const link = await ask(page.port, '/ui/', {
      Host: 'localhost',
      'Sec-Fetch-Site': 'cross-site',
      'Sec-Fetch-Mode': 'navigate',
    });

    expect([foreign, events, link].map((answer) => answer.slice(9, 12))).toEqual(['403', '403', '200']);
    expect(`${foreign}${events}`).not.toContain('worker-a');
    expect(page.reads()).toBe(0);
  });

  test('sends everything to a browser, and then what changes', async () => {
    const given = shown();
    await using page = await servePage(given);
    await using reader = await follow(page.url);
    await eventually(() => expect(reader.changes).toHaveLength(1));
    expect(reader.changes[0]?.machines).toHaveLength(6);

    const [first, ...rest] = given.objects.machines.map((one) => structuredClone(one));
    if (first?.status?.currentStatus !== undefined) first.status.currentStatus.phase = 'Failed';
    given.objects = { ...given.objects, machines: first === undefined ? rest : [first, ...rest.slice(1)] };

    await eventually(() => expect(reader.changes).toHaveLength(2));
    const [, second] = reader.changes;
    expect(second?.machines.map(({ key }) => key)).toEqual([`shoot--prod/${first?.metadata.name ?? ''}`]);
    expect(second?.gone).toEqual([`shoot--prod/${rest[0]?.metadata.name ?? ''}`]);
  });

  test('reads nothing when nobody looks any more, and serves so many at once', async () => {
    await using page = await servePage(shown());
    const readers = await Promise.all(Array.from({ length: MAX_READERS }, () => follow(page.url)));
    const refused = await fetch(`${page.url}events`);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '10']);
    await refused.body?.cancel();

    await Promise.all(readers.map((reader) => reader[Symbol.asyncDispose]()));

    await eventually(async () => {
      await using another = await follow(page.url);
      expect(another.status).toBe(200);
    });
    const { reads } = page;
    const before = reads();
    await using last = await follow(page.url);
    await eventually(() => expect(last.changes).toHaveLength(1));
    expect(reads()).toBeGreaterThan(before);
  });

  test('ends its responses when it stops', async () => {
    const page = await servePage(shown());
    const readers = await Promise.all([follow(page.url), follow(page.url)]);
    await eventually(() => expect(readers.map(({ changes }) => changes.length)).toEqual([1, 1]));

    await page[Symbol.asyncDispose]();

    await Promise.all(readers.map(({ ended }) => ended));
  });
});

test.each([
  { flags: ['--status-page'], status: 200 },
  { flags: [], status: 404 },
])(
  'machinist run with flags $flags answers on /ui/ with $status, and ends promptly with browsers connected',
  async ({ flags, status }) => {
    const port = await freePort();
    await using program = new Program('machinist', [
      'run',
      ...flags,
      `--port=${port}`,
      '--address=127.0.0.1',
      `--target-kubeconfig=${connect().kubeconfig}`,
      '--leader-elect=false',
      '--namespace=nowhere',
      '--controllers=secret',
    ]);
    const url = `http://127.0.0.1:${port}/ui/`;
    await eventually(async () => expect((await fetch(`http://127.0.0.1:${port}/livez`)).status).toBe(200), {
      timeoutMs: 120_000,
    });
    const answer = await fetch(url);
    expect(answer.status).toBe(status);
    await answer.text();
    if (status !== 200) return;
    await using reader = await follow(url);
    await eventually(() => expect(reader.changes.at(-1)?.sections.process?.hasSynced ?? true).toBe(true));
    await eventually(() => expect(reader.changes.length).toBeGreaterThan(0));
    expect(reader.changes[0]).toMatchObject({
      sections: {
        process: { program: 'machinist run', namespace: 'nowhere', readsMachines: true },
        leaders: [{ lease: 'machine-controller', state: 'always' }],
        clusters: expect.any(Array),
        drivers: [],
      },
      machines: [],
    });

    program.kill('SIGTERM');
    const ending = await program.ended();
    await reader.ended;

    expect(ending.code).toBe(0);
    expect(ending.stdout).not.toContain('"level":"error"');
  },
  180_000,
);
