import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { expect, test } from '@jest/globals';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** A method that looks into a text, of something with the name of a text for people. */
const READING =
  /\b(?:description|message|said|says|trouble)\)?(?:\?\.|\.)(?:includes|startsWith|endsWith|indexOf|lastIndexOf|match|search)\(/;

/** Who may look into such texts, and why. Everybody else decides by codes, reasons and annotations. */
const ALLOWED: Readonly<Record<string, string>> = {
  'cmd/machinist/rollout/rollout.ts': 'lines that were printed are not printed again',
  'pkg/driver/conformance/rules/creation.ts': 'a rule of the contract is that a message names what is wrong',
  'pkg/worlds/cluster-api/controllers/provider-id-claims.ts':
    'keeps its own words while nothing new is known; the reason is the same',
  'pkg/worlds/ironcore/controllers/explain.ts': 'does not say one thing twice',
  'pkg/controllers/machine/preservation/preserved-condition.ts': 'the original says so on Nodes in a message alone',
  'pkg/controllers/machine-facts/deletion-stage.ts': 'the original records the stages of a deletion so',
  'pkg/controllers/machine-facts/original-texts.ts': 'what the original says of a creation in its description alone',
  'pkg/worlds/mirantis/controllers/provider-status.ts': 'ends a sentence with one full stop',
  'pkg/drivers/openstack/intent.ts': 'a port has no other field for its owner',
  'pkg/base/log/logger.ts': 'does not say one thing twice',
};

test('decisions follow from codes, not from sentences', () => {
  const files = globSync('{pkg,packages,cmd}/**/*.ts', { cwd: ROOT, exclude: ['**/*.test.ts', '**/gen/**'] });
  const reading = files.filter((file) => READING.test(readFileSync(path.join(ROOT, file), 'utf8')));

  expect(reading.toSorted()).toEqual(Object.keys(ALLOWED).toSorted());
});
