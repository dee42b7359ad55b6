import { expect, test } from '@jest/globals';

import type { ClusterAPIMachine } from '../api/machine.ts';
import { contestedNode, contestOf, type ProviderIDClaim } from './provider-id-claims.ts';
import type { ObservedInfrastructure } from './observed.ts';

const ID = 'sim:///1';

const machine = (name: string, nodeName?: string, isProvisioned = false): ClusterAPIMachine => ({
  metadata: { name, namespace: 'ns', uid: `uid-of-${name}`, resourceVersion: '1', creationTimestamp: '' },
  spec: { providerID: ID, infrastructureRef: { apiGroup: 'g', kind: 'Sim', name: `i-${name}` } },
  status: {
    ...(nodeName !== undefined && { nodeRef: { name: nodeName } }),
    ...(isProvisioned && { initialization: { infrastructureProvisioned: true } }),
  },
});
const goes = (one: ClusterAPIMachine): ClusterAPIMachine => ({
  ...one,
  metadata: { ...one.metadata, deletionTimestamp: 'now' },
});
const seen = (providerID?: string, deletionTimestamp?: string): ObservedInfrastructure =>
  ({
    kind: 'found',
    external: { object: { metadata: { ...machine('i').metadata, deletionTimestamp } } },
    report: { providerID },
  }) as unknown as ObservedInfrastructure;

const REPORTS = seen(ID);
const SILENT = seen();
const OTHER_ID = seen('sim:///2');
const GOING = seen(ID, 'now');
const ABSENT: ObservedInfrastructure = { kind: 'absent' };
const FOREIGN: ObservedInfrastructure = { kind: 'foreign', problem: 'p' };
const READING: ObservedInfrastructure = { kind: 'reading' };

test.each<{ what: string; own: ProviderIDClaim; rivals: readonly ProviderIDClaim[]; kind: string | undefined }>([
  {
    what: 'alone',
    own: { machine: machine('m'), infrastructure: ABSENT },
    rivals: [],
    kind: undefined,
  },
  ...[ABSENT, GOING, FOREIGN, SILENT, OTHER_ID].flatMap((infrastructure) =>
    [undefined, 'n'].map((node) => ({
      what: `of ${node} without the VM, beside one whose infrastructure reports the ID`,
      own: { machine: machine('m', node), infrastructure },
      rivals: [{ machine: machine('other'), infrastructure: REPORTS }],
      kind: 'unknown',
    })),
  ),
  {
    what: 'that has lost its infrastructure, beside one that is still being read',
    own: { machine: machine('m', 'n'), infrastructure: ABSENT },
    rivals: [{ machine: machine('other'), infrastructure: READING }],
    kind: 'undecided',
  },
  {
    what: 'that has lost its infrastructure and has the Node, beside one without any',
    own: { machine: machine('m', 'n'), infrastructure: ABSENT },
    rivals: [{ machine: machine('other', 'n'), infrastructure: ABSENT }],
    kind: undefined,
  },
  {
    what: 'without infrastructure, beside one that has the Node',
    own: { machine: machine('m'), infrastructure: FOREIGN },
    rivals: [{ machine: machine('other', 'n'), infrastructure: ABSENT }],
    kind: 'unknown',
  },
  ...[REPORTS, SILENT, READING].map((infrastructure) => ({
    what: 'whose VM may have the Node, beside one that has it and nothing else',
    own: { machine: machine('m'), infrastructure },
    rivals: [{ machine: machine('other', 'n'), infrastructure: ABSENT }],
    kind: 'undecided',
  })),
  {
    what: 'whose infrastructure has reported the ID before',
    own: { machine: machine('m', 'n', true), infrastructure: SILENT },
    rivals: [{ machine: machine('other'), infrastructure: REPORTS }],
    kind: undefined,
  },
  ...[undefined, 'n'].flatMap((node) => [
    ...[REPORTS, READING].map((infrastructure) => ({
      what: `that has Node ${node}, beside one that has the same, and infrastructure that reports the ID`,
      own: { machine: machine('m', node), infrastructure },
      rivals: [{ machine: machine('other', node), infrastructure: REPORTS }],
      kind: 'undecided',
    })),
    {
      what: `that has Node ${node}, and goes as one that has the same`,
      own: { machine: goes(machine('m', node)), infrastructure: REPORTS },
      rivals: [{ machine: goes(machine('other', node)), infrastructure: REPORTS }],
      kind: undefined,
    },
  ]),
  {
    what: 'that has Node and infrastructure, beside one with a Node of its own',
    own: { machine: machine('m', 'n'), infrastructure: REPORTS },
    rivals: [{ machine: machine('other', 'o'), infrastructure: REPORTS }],
    kind: undefined,
  },
  ...[SILENT, ABSENT, READING].map((infrastructure) => ({
    what: 'with infrastructure, beside one of which that is not known',
    own: { machine: machine('m'), infrastructure: REPORTS },
    rivals: [{ machine: machine('other'), infrastructure }],
    kind: undefined,
  })),
])('a Machine $what: its Node is $kind', ({ own, rivals, kind }) => {
  expect(contestedNode(own, rivals)?.kind).toBe(kind);
});

test('both Machines are named, what speaks for each, and two sources before any is deleted', () => {
  const own = { machine: machine('m'), infrastructure: REPORTS };

  expect(contestOf(own, { machine: machine('first', 'n'), infrastructure: ABSENT })).toBe(
    `Machines ns/m and ns/first have the same provider ID ${ID} (Node n): Sim i-m of ns/m reports it; Sim i-first of ns/first is gone. ` +
      'Delete neither until two sources confirm that the VM belongs to the other: the provider, which knows for which object it created the VM, and ' +
      'status.nodeInfo.systemUUID of Node n, which is that of the VM',
  );
});

test.each([
  { what: 'is gone', infrastructure: ABSENT },
  { what: 'goes', infrastructure: GOING },
  { what: "is another's", infrastructure: FOREIGN },
  { what: 'has not reported it', infrastructure: SILENT },
  { what: 'cannot be read yet', infrastructure: READING },
])('of infrastructure it is said that it $what', ({ what, infrastructure }) => {
  const text = contestOf({ machine: machine('m'), infrastructure }, { machine: machine('o'), infrastructure: REPORTS });

  expect(text).toContain(`Sim i-m of ns/m ${what}; Sim i-o of ns/o reports it.`);
});

test('what was said of both stands while a manager that has started reads their infrastructure', () => {
  const rival = { machine: machine('o', 'n'), infrastructure: REPORTS };
  const before = contestOf({ machine: machine('m'), infrastructure: REPORTS }, rival);
  const condition = { type: 'NodeReady', status: 'Unknown' as const, reason: 'InspectionFailed', message: before };
  const own = { ...machine('m'), status: { conditions: [condition] } };

  expect(contestOf({ machine: own, infrastructure: READING }, rival)).toBe(before);
  expect(contestOf({ machine: own, infrastructure: ABSENT }, rival)).toContain('Sim i-m of ns/m is gone;');
  expect(contestOf({ machine: own, infrastructure: READING }, { ...rival, machine: machine('p') })).toContain('ns/p');
});
