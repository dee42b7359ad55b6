import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { expect, test } from '@jest/globals';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** A method that looks into a text, of something with the name of a text for people. */
const READING =
  /\b(?:description|message|said|says|trouble)\)?(?:\?\.|\.)(?:includes|startsWith|endsWith|indexOf|lastIndexOf|match|search)\(/;

/** A regular expression, applied to one. */
const MATCHING = /\.(?:test|exec)\([^;\n]*\b(?:description|message|details|trouble)\b/;

/** A comparison with another text; whether there is one at all may be asked. */
const COMPARING =
  /\b(?:description|message)\)?\s(?:===|!==)\s(?!undefined\b|''|'string')|\s(?:===|!==)\s[\w?.]*\b(?:description|message)\b(?!\()/;

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

/** Who may apply a regular expression to one. */
const MAY_MATCH: Readonly<Record<string, string>> = {
  'pkg/autoscaler/answer.ts': 'which advice an error ends with: webhooks refuse with the code of missing permissions',
  'pkg/controllers/machine/tokens/bootstrap-tokens.ts':
    'the original names the Machine of a token in its description alone',
  'pkg/driver/grpc/transport-error.ts':
    'the library has no code for why there is no connection; the words only are better',
  'pkg/drivers/openstack/http.ts': 'Node.js has no code for what a proxy has refused',
  'pkg/drivers/openstack/intent.ts': 'a port has no other field for its owner',
};

const NEWS = 'what is said already is not written or told again';

/** Who may compare one with another. */
const MAY_COMPARE: Readonly<Record<string, string>> = {
  'pkg/autoscaler/served-groups.ts': NEWS,
  'pkg/controllers/machine-deployment/outage-condition.ts': NEWS,
  'pkg/controllers/machine-deployment/rollout/progressing-condition.ts': NEWS,
  'pkg/controllers/machine-deployment/status.ts': NEWS,
  'pkg/controllers/machine-facts/node-condition.ts': NEWS,
  'pkg/controllers/machine-facts/node-health.ts': NEWS,
  'pkg/controllers/machine-facts/status.ts': NEWS,
  'pkg/controllers/machine/creation/await-name.ts': NEWS,
  'pkg/controllers/machine/creation/initialize.ts': NEWS,
  'pkg/controllers/machine/creation/launch.ts': NEWS,
  'pkg/controllers/machine/creation/resolve.ts': NEWS,
  'pkg/controllers/machine/deletion/cursor.ts': `${NEWS}; a record, with its time, is the one that this process wrote`,
  'pkg/controllers/machine/drain/report.ts': NEWS,
  'pkg/controllers/machine/explain/condition-step.ts': NEWS,
  'pkg/controllers/machine/explain/conditions.ts': NEWS,
  'pkg/controllers/machine/failure/held-back.ts': NEWS,
  'pkg/controllers/machine/in-place/facts.ts':
    'of an update that was canceled nothing is explained; nothing is decided',
  'pkg/controllers/machine/node/unidentified-node.ts': NEWS,
  'pkg/controllers/machine/preparation/preparation.ts': NEWS,
  'pkg/controllers/machine/record/refused-record.ts': NEWS,
  'pkg/controllers/replicas/events.ts': NEWS,
  'pkg/drivers/openstack/disks.ts': 'a volume has no other field for what it is of its machine',
  'pkg/drivers/openstack/volume.ts': 'a volume has no other field for its owner',
  'pkg/operator/cells/cells.ts': NEWS,
  'pkg/worlds/cluster-api/controllers/cluster-events.ts': NEWS,
  'pkg/worlds/cluster-api/controllers/machine-controller.ts': NEWS,
  'pkg/worlds/cluster-api/controllers/machine-events.ts': NEWS,
  'pkg/worlds/ironcore/controllers/explain.ts': 'does not say one thing twice',
  'pkg/worlds/ironcore/controllers/machine/pool-condition.ts': NEWS,
  'pkg/worlds/ironcore/controllers/machine/reports.ts': NEWS,
  'pkg/worlds/mirantis/controllers/events.ts': NEWS,
};

/** Who may date a condition by hand; everybody else has the time of its last transition from `dated`. */
const MAY_DATE: Readonly<Record<string, string>> = {
  'pkg/work/reconcile/conditions.ts': 'this is `dated`',
  'pkg/drain/cordon.ts': 'writes only if the status is another',
  'pkg/controllers/replicas/freeze-marks.ts': 'writes only as a freeze begins, or is put again for another cause',
};

test.each([
  { what: 'looks into sentences', by: READING, allowed: ALLOWED },
  { what: 'matches sentences', by: MATCHING, allowed: MAY_MATCH },
  { what: 'compares sentences', by: COMPARING, allowed: MAY_COMPARE },
])('decisions follow from codes: only who is named here $what', ({ by, allowed }) => {
  expect(filesWith(by, '{pkg,packages,cmd}')).toEqual(Object.keys(allowed).toSorted());
});

test('conditions are dated in one place', () => {
  expect(filesWith(/\blastTransitionTime(?::\s|\s=[^=])/, '{pkg,cmd}')).toEqual(Object.keys(MAY_DATE).toSorted());
});

function filesWith(pattern: RegExp, folders: string): string[] {
  const files = globSync(`${folders}/**/*.ts`, { cwd: ROOT, exclude: ['**/*.test.ts', '**/gen/**'] });
  return files.filter((file) => pattern.test(readFileSync(path.join(ROOT, file), 'utf8'))).toSorted();
}
