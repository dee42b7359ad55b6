import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';

import { parseManifests } from '../../../hack/control-plane/apply.ts';
import { node } from '../../../test/builders.ts';
import type { ClusterAPIMachine } from '../../apis/cluster-api/machine.ts';
import { clusterAPIClusters, clusterAPIMachines, apiVersionOf } from '../../kube/resource.ts';
import { deprecatedOf, machineConditions } from './conditions.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../../docs/operations/cluster-api.md'), 'utf8');

test('the example of the page is a Cluster and a Machine of it', () => {
  const [yaml = ''] = [...PAGE.matchAll(/```yaml\n([^]*?)```/g)].map(([, text = '']) => text);
  const [cluster, machine] = parseManifests(yaml);

  expect([cluster, machine].map((one) => `${one?.apiVersion} ${one?.kind}`)).toEqual(
    [clusterAPIClusters, clusterAPIMachines].map((resource) => `${apiVersionOf(resource)} ${resource.kind}`),
  );
  expect((machine as unknown as ClusterAPIMachine).spec?.clusterName).toBe(cluster?.metadata.name);
});

test('the page has each condition that is written, and no other', () => {
  const machine = { metadata: { ...node().metadata }, spec: {} };
  const absent = { kind: 'absent' } as const;
  const facts = {
    machine,
    infrastructure: absent,
    bootstrap: absent,
    node: absent,
    dataSecret: undefined,
    deleting: undefined,
    problems: [],
  };
  const conditions = machineConditions(facts, 0);
  const table = PAGE.split('\n\n').find((part) => part.startsWith('| condition '));
  const cells = (table ?? '')
    .split('\n')
    .slice(2)
    .map((line) => line.split('|').map((cell) => cell.trim()));
  const [, , older = ''] = cells.at(-1) ?? [];

  const named = cells.slice(0, -1).flatMap(([, types = '']) => types.split(', '));
  expect(new Set(named)).toEqual(new Set(conditions.map(({ type }) => type)));
  expect(new Set(older.split(', ').slice(0, -1))).toEqual(new Set(deprecatedOf(conditions).map(({ type }) => type)));
});
