import type { ChildProcess } from 'node:child_process';

/**
 * Gives a program its standard input. One that has ended without reading it tells by its exit code and its output what was wrong, if anything
 * was: that nobody reads any more (EPIPE) is no failure of its own.
 */
export function feed({ stdin }: ChildProcess, input: string): void {
  stdin?.on('error', () => undefined);
  stdin?.end(input);
}
