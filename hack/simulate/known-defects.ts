import { spawn } from 'node:child_process';
import path from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

import { KNOWN_DEFECTS, type KnownDefect } from '../../test/simulation/known-defects/defects.ts';
import { Pieces } from '../mutations/mutation.ts';
import { readSources } from '../mutations/sources.ts';
import { DEFECT_VARIABLE, type SourceChange } from './put-in.ts';
import type { Sought } from './seek.ts';

/** Of what was found. */
const SHOWN = 90;
const ROOT = path.join(import.meta.dirname, '../..');

/** How long each is sought. */
export interface SeekLimits {
  /** The first seed. */
  readonly from: number;
  readonly seeds: number;
  /** Of the processor. */
  readonly ms: number;
}

/** Puts known defects back, one by one, and tells how many seeds and seconds it takes until each is found. Returns the names of those that are not. */
export async function seekKnownDefects(
  isMeant: (name: string) => boolean,
  limits: SeekLimits,
  tell: (line: string) => void,
): Promise<readonly string[]> {
  const pieces = new Pieces(readSources(ROOT));
  const missed: string[] = [];
  for (const defect of KNOWN_DEFECTS.filter(({ name }) => isMeant(name))) {
    const { file, edit } = pieces.locate(defect.change);
    const sought = await seek({ name: defect.name, url: pathToFileURL(path.join(ROOT, file)).href, edit }, limits);
    tell(line(defect, sought));
    if (sought.found === undefined) missed.push(defect.name);
  }
  return missed;
}

async function seek(change: SourceChange, { from, seeds, ms }: SeekLimits): Promise<Sought> {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, 'seek.ts'), ...[from, seeds, ms].map(String)], {
    env: { ...process.env, [DEFECT_VARIABLE]: JSON.stringify(change) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const said = await textOf(child.stdout);
  if (said === '') throw new Error(`what sought ${change.name} has ended without a word`);
  return JSON.parse(said) as Sought;
}

function line({ name, change: { why } }: KnownDefect, { seeds, runs, ms, found }: Sought): string {
  const spent = `${seeds} (${runs}) | ${(ms / 1_000).toFixed(0)} s`;
  if (found === undefined) return `| ${name} | ${why} | not in ${spent} | |`;
  return `| ${name} | ${why} | ${spent} | ${found.seed}: ${found.what.replace(/^\d+ s: /, '').slice(0, SHOWN)} |`;
}
