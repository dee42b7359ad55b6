import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { describe, expect, test } from '@jest/globals';

import { eventually } from '../expect/eventually.ts';

const PROGRAM = join(import.meta.dirname, '../processes/lifecycle-program.ts');

function run(mode: string) {
  const child = spawn(process.execPath, [PROGRAM, mode], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk;
  });
  const ended = once(child, 'close');
  return {
    child,
    says: (word: string) => eventually(() => output.includes(word), { describe: word }),
    async end() {
      const [code] = (await ended) as [number | null]; // the arguments of `close`
      return { code, words: output.trim().split('\n') };
    },
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  };
}

describe('a real process', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    'stops with grace and code 0 on %s, although nothing else keeps it alive',
    async (signal) => {
      using program = run('runs');
      await program.says('started');

      program.child.kill(signal);

      expect(await program.end()).toEqual({ code: 0, words: ['started', 'stopping 20000', 'ended'] });
    },
  );

  test.each(['throws', 'rejects'])('that %s unnoticed stops its members and exits with 1', async (mode) => {
    using program = run(mode);

    expect(await program.end()).toEqual({ code: 1, words: ['started', 'stopping 0', 'ended'] });
  });

  test('whose log nobody reads any more goes on, and ends as ever', async () => {
    using program = run('logs');
    await program.says('lived on');
    program.child.stdout.destroy();
    // Long enough for lines that cannot be written: an end by itself would have come by then.
    await expect(Promise.race([once(program.child, 'exit'), sleep(500)])).resolves.toBeUndefined();

    program.child.kill('SIGTERM');

    expect((await program.end()).code).toBe(0);
  });

  test('whose log nobody takes keeps some of it, and says how much was lost once somebody does', async () => {
    const child = spawn(process.execPath, [PROGRAM, 'floods'], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
    using _ended = { [Symbol.dispose]: () => void child.kill('SIGKILL') };
    const [kept] = (await once(child, 'message')) as [number]; // as the program sends it
    let output = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
    await eventually(() => /"lines":\d+,"msg":"dropped log lines because standard output was blocked"/.test(output));

    expect(kept).toBeGreaterThan(4_000_000);
    expect(kept).toBeLessThan(5_000_000);
  });

  test('exits at once on a second signal', async () => {
    using program = run('hangs');
    await program.says('started');
    program.child.kill('SIGTERM');
    await program.says('stopping');

    program.child.kill('SIGTERM');

    expect(await program.end()).toEqual({ code: 143, words: ['started', 'stopping 20000'] });
  });
});
