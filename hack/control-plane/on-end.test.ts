import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { expect, test } from '@jest/globals';

const MODULE = path.join(import.meta.dirname, 'on-end.ts');

/** Runs `program` with `onEnd` imported, sends it `signal`, if any, once when it is ready, and tells how it ended. */
async function ended(program: string, signal?: NodeJS.Signals) {
  const source = `import { onEnd } from ${JSON.stringify(MODULE)}; setInterval(() => {}, 60_000); ${program}; console.log('ready');`;
  const child = spawn(process.execPath, ['--input-type=module-typescript', '--eval', source], {
    stdio: ['ignore', 'pipe', signal === undefined ? 'ignore' : 'inherit'],
  });
  let output = '';
  let isTold = false;
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    // Once: a second signal would end a process that is on its way out, and listens no more.
    if (signal !== undefined && !isTold && output.includes('ready')) isTold = child.kill(signal);
  });
  const [code, by] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  return { output: output.split('\n').filter((line) => line !== ''), code, by };
}

test.each(['SIGINT', 'SIGTERM'] as const)(
  'on %s ends what was started, and then the process by that signal',
  async (signal) => {
    expect(await ended(`onEnd(() => console.log('ended'))`, signal)).toEqual({
      output: ['ready', 'ended'],
      code: null,
      by: signal,
    });
  },
);

test('leaves the end of the process to others that listen', async () => {
  const program = `process.once('SIGINT', () => process.exit(3)); onEnd(() => console.log('ended'))`;
  expect(await ended(program, 'SIGINT')).toEqual({ output: ['ready', 'ended'], code: 3, by: null });
});

test('calls nobody any more once it is disposed of', async () => {
  const program = `onEnd(() => console.log('ended'))[Symbol.dispose]()`;
  expect(await ended(program, 'SIGINT')).toEqual({ output: ['ready'], code: null, by: 'SIGINT' });
});

test.each([
  { how: 'an error that nobody catches', dies: `setTimeout(() => { throw new Error('a death') })` },
  { how: 'a rejection that nobody handles', dies: `void Promise.reject(new Error('a death'))` },
  { how: 'process.exit', dies: 'setTimeout(() => process.exit(1))' },
])('ends what was started when the process dies of $how', async ({ dies }) => {
  const program = `onEnd(() => console.log('ended')); ${dies}`;
  expect(await ended(program)).toEqual({ output: ['ready', 'ended'], code: 1, by: null });
});
