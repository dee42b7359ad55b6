import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { FakeWorld } from '../../../test/fakes/machine-world.ts';
import { describeStage, DELETION_STAGES } from '../machine-facts/deletion-stage.ts';
import { MAINTENANCE_REASONS, NO_MACHINE } from '../machine-facts/maintenance.ts';

const DOCS = join(import.meta.dirname, '../../../docs');

/** First cells of the rows of the tables under a heading, without backticks; second cells with them. */
function rows(file: string, heading: string): string[][] {
  const section = readFileSync(join(DOCS, file), 'utf8').split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  return section
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| --'))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .slice(1)
    .map((cells) => cells.slice(1, -1));
}

describe('the documentation', () => {
  test.each([
    { heading: 'Creation', steps: new FakeWorld().upkeep },
    { heading: 'Deletion', steps: new FakeWorld().deletion },
  ])('has the steps of "$heading" in their order', ({ heading, steps }) => {
    const documented = rows('concepts/machine-lifecycle.md', heading).map(([name]) => name);

    expect(documented).toEqual(steps.map(({ name }) => name));
  });

  test('has every reason of condition Maintenance, and whether it is True', () => {
    const documented = rows('operations/maintenance.md', 'Status').map(([reason, status]) => [reason, status]);

    const statuses = [...MAINTENANCE_REASONS, NO_MACHINE].map((reason) => [
      reason,
      reason === 'InMaintenance' ? 'True' : 'False',
    ]);
    expect(documented).toEqual(statuses);
  });

  test('has the marker of every stage', () => {
    const documented = new Set(rows('concepts/machine-lifecycle.md', 'Deletion').map(([, marker]) => marker));

    for (const stage of DELETION_STAGES) expect(documented).toContain(`\`${describeStage(stage)}\``);
  });
});
