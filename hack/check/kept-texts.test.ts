import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { MACHINE_DEPLOYMENT_EVENT_SOURCE } from '../../pkg/controllers/machine-deployment/events.ts';
import { IN_PLACE_REASONS, IN_PLACE_UPDATE } from '../../pkg/controllers/machine/in-place/reason.ts';
import { DELETION_STAGES, describeStage } from '../../pkg/controllers/machine-facts/deletion-stage.ts';
import { CREATE_FAILED, INITIALIZE_FAILED } from '../../pkg/controllers/machine-facts/original-texts.ts';
import { MACHINE_SET_EVENT_SOURCE } from '../../pkg/controllers/replicas/events.ts';
import { KEYS } from '../generate/annotations-reference.ts';
import { metricsReference } from '../generate/metrics-reference.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const PAGE = readFileSync(path.join(ROOT, 'docs/reference/compatibility.md'), 'utf8');

/** The code of the product. */
const SOURCES = globSync('{pkg,packages}/**/*.ts', { cwd: ROOT, exclude: ['**/*.test.ts'] }).map((file) =>
  readFileSync(path.join(ROOT, file), 'utf8'),
);

/** Rows of all tables under a heading, without their headers; cells without backticks. */
function rows(heading: string, page = PAGE): string[][] {
  const section = page.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  const lines = section.split('\n').map((line) => line.split(/(?<!\\)\|/).slice(1, -1));
  return lines
    .filter((cells, at) => cells.length > 1 && !isRule(cells) && !isRule(lines[at + 1] ?? []))
    .map((cells) => cells.map((cell) => /^`([^`]*)`$/.exec(cell.trim())?.[1] ?? cell.trim()));
}

/** The line between the header of a table and its rows. */
function isRule(cells: readonly string[]): boolean {
  return cells.some((cell) => /^ -+ $/.test(cell));
}

/** First cells under a heading. */
function texts(heading: string): string[] {
  return rows(heading).map(([text = '']) => text);
}

describe('texts that stay as in the original', () => {
  test.each(['Statuses of Machines', 'Conditions', 'Events', 'Leases and queues'])(
    '%s: each is written in the code',
    (heading) => {
      expect(texts(heading).filter((text) => !isWritten(text))).toEqual([]);
      expect(rows(heading).length).toBeGreaterThan(5);
    },
  );

  test('statuses have every stage of a deletion, and the beginnings of failed creations', () => {
    const stages = DELETION_STAGES.map((stage) => describeStage(stage));

    expect(texts('Statuses of Machines')).toEqual(
      expect.arrayContaining([...stages, CREATE_FAILED, INITIALIZE_FAILED]),
    );
  });

  test('conditions have every reason of an update in place', () => {
    expect(texts('Conditions')).toEqual(expect.arrayContaining([IN_PLACE_UPDATE, ...IN_PLACE_REASONS]));
  });

  test('Events come from the source components that the table names', () => {
    const sources = new Set(rows('Events').map(([, source = '']) => source));

    expect(sources).toEqual(new Set([MACHINE_SET_EVENT_SOURCE, MACHINE_DEPLOYMENT_EVENT_SOURCE]));
  });

  test('every label, annotation, finalizer and taint of the original is listed, and no other', () => {
    const keys = KEYS.filter(({ heading }) => heading.startsWith("The original's")).map(({ key }) => key);

    expect(texts('Labels, annotations, finalizers and taints').toSorted()).toEqual(keys.toSorted());
  });

  test('every metric of the original is there, with its labels', async () => {
    const declared = rows('', `\n## \n${await metricsReference()}`).map(([name, , names]) => `${name}: ${names}`);
    const kept = rows('Metrics').map(([name, names]) => `${name}: ${names}`);

    expect(kept.filter((metric) => !declared.includes(metric))).toEqual([]);
    expect(kept.length).toBeGreaterThan(40);
  });

  test('the threads of the original in the table are those that titles of tests name', () => {
    const marked = globSync('{pkg,packages,test}/**/*.test.ts', { cwd: ROOT }).flatMap((file) =>
      marksIn(readFileSync(path.join(ROOT, file), 'utf8')),
    );

    expect(new Set(rows('Threads of the original').flatMap(([threads = '']) => marksIn(threads)))).toEqual(
      new Set(marked),
    );
  });
});

/** Whether the code has `text` as a string, or as the beginning of a template. */
function isWritten(text: string): boolean {
  const forms = [`'${text}'`, `"${text}"`, `\`${text}\``, `\`${text}\${`];
  return SOURCES.some((source) => forms.some((form) => source.includes(form)));
}

function marksIn(text: string): string[] {
  return [...text.matchAll(/\bMCM \d+\b/g)].map(([mark]) => mark);
}
