import { expect } from '@jest/globals';

import { sampled } from '../expect/sampled.ts';
import { type Fate, FATES, type FaultyLife } from './faulty-world.ts';

/** One mutation of a life, and what happens at it. */
export interface Row {
  readonly n: number;
  readonly fate: Fate;
  readonly mutation: string;
}

/** A life whose n-th mutation goes wrong; with n = 0 none. */
export type Live<T extends FaultyLife = FaultyLife> = (n: number, fate: Fate) => Promise<T>;

/** All mutations of a life without a fault, at each of which this can happen. */
export async function rowsOf(live: Live, fate: Fate): Promise<readonly Row[]> {
  const { mutations, findings } = await live(0, fate);
  expect(findings).toEqual([]);
  return mutations.map((mutation, i) => ({ n: i + 1, fate, mutation: mutation.replace(/ \/.*\/namespaces\//, ' ') }));
}

/** A part of these rows, with each fate; all of them with MACHINIST_TEST_SAMPLE=all. */
export function sampleFrom(name: string, rows: readonly Row[], least: number): readonly Row[] {
  const nameOf = ({ n, fate, mutation }: Row): string => `${fate} ${n}: ${mutation}`;
  return sampled({ name, rows, nameOf, kindsOf: ({ fate }) => [fate], least });
}

/** The same of all fates in such lives. Those without a fault are alike, unless their processes elect a leader. */
export async function sampleOf(name: string, live: Live, least: number): Promise<readonly Row[]> {
  const rows = await rowsOf(live, 'before');
  const ofOne = FATES.filter((fate) => fate !== 'paused').flatMap((fate) => rows.map((row) => ({ ...row, fate })));
  return sampleFrom(name, [...ofOne, ...(await rowsOf(live, 'paused'))], least);
}

/** A life for each row, in which nothing was found and so many VMs were made at most. */
export async function hitEach<T extends FaultyLife>(
  live: Live<T>,
  rows: readonly Row[],
  { least, most = least }: { readonly least: number; readonly most?: number },
): Promise<readonly T[]> {
  const lives: T[] = [];
  for (const { n, fate } of rows) lives.push(await live(n, fate));

  const isWrong = ({ findings, vmsCreated }: T): boolean =>
    findings.length > 0 || vmsCreated < least || vmsCreated > most;
  expect(lives.filter(isWrong)).toEqual([]);
  // How many there are differs a little from life to life.
  expect(lives.filter(({ isHit, n, mutations }) => !isHit && n <= mutations.length)).toEqual([]);
  return lives;
}
