import { resolveProgram } from './binaries.ts';
import { ControlPlaneError } from './error.ts';
import { PROGRAMS } from './programs.ts';

const say = (line: string): void => console.error(`control plane: ${line}`);

/**
 * Command: makes sure that every program of the control plane is there, and of those that few need the ones that are named, building
 * what is missing, and says on standard error how it goes. Silent and quick when nothing is missing. Ends with 1 and one sentence when a
 * program cannot be had.
 */
async function main(optional: readonly string[]): Promise<number> {
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));
  try {
    for (const { name } of PROGRAMS.filter((one) => one.isOptional !== true || optional.includes(one.name))) {
      await resolveProgram(name, { progress: ({ message }) => say(message), log: say, signal: stop.signal });
    }
    return 0;
  } catch (err) {
    if (!(err instanceof ControlPlaneError) && !stop.signal.aborted) throw err;
    say((err as Error).message);
    return 1;
  }
}

process.exitCode = await main(process.argv.slice(2));
