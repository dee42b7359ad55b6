import { spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import path from 'node:path';

/** A program under measurement. */
export interface Program {
  readonly pid: number;
  /** Resolves when it has ended. */
  stop(): Promise<void>;
}

/** How programs are started. */
export interface Launch {
  /** Folder of `cmd/`: sources, or what `npm run build` has compiled. */
  readonly root: string;
  /** `ts` for sources, `js` for compiled files. */
  readonly extension: 'ts' | 'js';
  /** Flags of Node itself. */
  readonly nodeFlags: readonly string[];
  /** Folder for logs. */
  readonly logs: string;
}

/** Starts the entry point of `cmd/<name>` with this process's Node. */
export function startProgram(launch: Launch, name: string, args: readonly string[]): Program {
  const { root, extension, nodeFlags, logs } = launch;
  const log = openSync(path.join(logs, `${name}.log`), 'a');
  const entry = path.join(root, 'cmd', name, `main.${extension}`);
  const child = spawn(process.execPath, [...nodeFlags, entry, ...args], { stdio: ['ignore', log, log] });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return { pid: child.pid ?? 0, stop: async () => (child.kill('SIGTERM'), ended) };
}
