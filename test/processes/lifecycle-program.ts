import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { createLogger } from '../../pkg/base/log/logger.ts';
import { Lifecycle } from '../../pkg/operator/process/lifecycle.ts';

/**
 * A process with one member that tells on standard output what happens to it. Its argument: `runs`, `throws` (in a timer),
 * `rejects` (nobody awaits it), `hangs` (its stop never ends), `logs` (a line every few milliseconds), or `floods` (as many lines as it
 * takes to lose some, which it tells its parent).
 */
const [mode] = process.argv.slice(2);
const say = (word: string): boolean => process.stdout.write(`${word}\n`);
const log = createLogger(mode === 'logs' || mode === 'floods' ? 'info' : 'silent');
const lifecycle = new Lifecycle({ clock: new SystemClock(), log, host: process });

lifecycle.add({
  name: 'member',
  async start() {
    say('started');
    if (mode === 'throws') {
      setTimeout(() => {
        throw new Error('bug');
      }, 1);
    }
    if (mode === 'logs') setInterval(() => log.info({}, 'lived on'), 5);
    if (mode === 'floods') {
      const flood = setInterval(() => {
        for (let i = 0; i < 100; i++) log.info({ text: 'x'.repeat(1_000) }, 'said');
        if (log.lostLines?.() === 0) return;
        process.send?.(process.stdout.writableLength);
        clearInterval(flood);
      }, 1);
    }
    if (mode === 'rejects') void Promise.reject(new Error('bug'));
  },
  async stop(graceMs) {
    say(`stopping ${graceMs}`);
    if (mode === 'hangs') await new Promise(() => undefined);
  },
});

const code = await lifecycle.run();
say('ended');
process.exit(code);
