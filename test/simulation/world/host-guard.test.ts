import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { expect, test } from '@jest/globals';

const GUARD = pathToFileURL(path.join(import.meta.dirname, 'host-guard.ts')).href;
/** What only code of the product, or of a world, is refused. */
const OF_OURS = [
  'Math.random()',
  'Date.now()',
  'new Date()',
  'Date()',
  'performance.now()',
  'setTimeout(() => undefined)',
  'setInterval(() => undefined)',
  'host.randomInt(9)',
  'host.randomBytes(1)',
  'host.randomUUID()',
  'host.getRandomValues(new Uint8Array(1))',
  'crypto.randomUUID()',
  'crypto.getRandomValues(new Uint8Array(1))',
];
/** What everybody is refused. */
const OF_ANYONE = [
  "host.readFileSync('/')",
  "host.readFile('/')",
  "host.execFile('true')",
  "host.connect('/nowhere')",
  'host.createServer()',
  "host.lookup('localhost', () => undefined)",
];
/** What a seed decides: nobody is refused it. */
const ALLOWED = [
  'new Date(0).toISOString()',
  'new Date(0) instanceof Date',
  'new Date(0).constructor === Date',
  'Date.UTC(1970)',
  "Date.parse('1970-01-01T00:00:00Z')",
  'Math.max(1, 2)',
  'queueMicrotask(() => undefined)',
];

/** Asks for each of these in a process with the guard, as code of that file would; answers which of them were refused. */
function refusedOf(asked: readonly string[], { from, opened = false }: { from: string; opened?: boolean }): string[] {
  const program = `
    import vm from 'node:vm';
    import { execFile } from 'node:child_process';
    import { getRandomValues, randomBytes, randomInt, randomUUID } from 'node:crypto';
    import { lookup } from 'node:dns';
    import { readFileSync } from 'node:fs';
    import { readFile } from 'node:fs/promises';
    import { connect, createServer } from 'node:net';
    import { guardAgainstHost, withHost } from '${GUARD}';
    const { asked, from, opened } = ${JSON.stringify({ asked, from, opened })};
    guardAgainstHost();
    globalThis.host = { execFile, getRandomValues, randomBytes, randomInt, randomUUID, lookup, readFileSync, readFile, connect, createServer };
    const isRefused = (text) => {
      try {
        const ask = () => vm.runInThisContext(text, { filename: from });
        opened ? withHost(ask) : ask();
        return false;
      } catch (err) {
        if (/ is not the seed's$/.test(err.message)) return true;
        return false;
      }
    };
    // Not while modules are loaded.
    await new Promise((resolve) => setImmediate(resolve));
    const refused = asked.filter(isRefused);
    withHost(() => process.stdout.write(JSON.stringify(refused)));
    process.exit(0);
  `;
  const answer = execFileSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8' });
  return JSON.parse(answer) as string[];
}

test.each(['/src/pkg/kube/cache.ts', '/src/test/simulation/world/life.ts'])(
  'time, randomness, timers, files, processes and sockets of the host are refused to %s, and nothing else',
  (from) => {
    expect(refusedOf([...OF_OURS, ...OF_ANYONE, ...ALLOWED], { from })).toEqual([...OF_OURS, ...OF_ANYONE]);
  },
);

test('libraries are refused files, processes and sockets of the host', () => {
  const from = '/src/node_modules/library/index.js';

  expect(refusedOf([...OF_OURS, ...OF_ANYONE, ...ALLOWED], { from })).toEqual(OF_ANYONE);
});

test('what is no part of a world may use the host', () => {
  const asked = [...OF_OURS, ...OF_ANYONE.filter((text) => !/connect|lookup|readFile\(/.test(text))];

  expect(refusedOf(asked, { from: '/src/pkg/kube/cache.ts', opened: true })).toEqual([]);
});
