import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { parseManifests } from '../../../../hack/control-plane/apply.ts';
import { clusterMachine, clusterSettings } from '../../../../test/cluster-machine.ts';
import { CLUSTER_GROUP, CLUSTER_VERSION, PROVIDER_LABEL, type ClusterMachine } from '../api/machine.ts';
import type { ConfigMap, Secret } from '../../../apis/wire.ts';
import { NEEDED_SETTINGS, readClusterSettings, CLUSTER_SETTINGS } from './cluster-settings.ts';
import { SERVED_PROVIDER } from './front-end.ts';
import { providerStatusOf } from './provider-status.ts';
import { readProviderValue } from './provider-value.ts';
import { clusterNameOf } from './desired-machine.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../../../docs/operations/mirantis.md'), 'utf8');

/** Cells of the rows of a table, found by its first heading, without backticks in the first. */
function rows(heading: string): string[][] {
  const table = PAGE.split('\n\n').find((part) => part.startsWith(`| ${heading} `) && !used.has(part));
  if (table === undefined) throw new Error(`no table of ${heading}`);
  used.add(table);
  const cells = table.split('\n').map((line) => line.split('|').map((cell) => cell.trim()));
  return cells.slice(2).flatMap(([, name = '', ...rest]) => (name === '' ? [] : [[name.replaceAll('`', ''), ...rest]]));
}
const used = new Set<string>();

describe('the page says what there is', () => {
  test('of the settings of a Cluster', () => {
    const told = rows('key');
    const needed = new Map(
      NEEDED_SETTINGS.flatMap((keys) => keys.map((key) => [key as string, keys.length > 1 ? 'one of both' : 'yes'])),
    );

    expect(Object.fromEntries(told.map(([key, what]) => [key, what]))).toEqual(CLUSTER_SETTINGS);
    expect(told.filter(([key = '', , is]) => is !== (needed.get(key) ?? 'no'))).toEqual([]);
  });

  test('of the settings that are needed: each is missed, and no other', () => {
    const without = (keys: readonly string[]): object =>
      clusterSettings(Object.fromEntries(keys.map((key) => [key, undefined])));

    for (const keys of NEEDED_SETTINGS)
      expect(readClusterSettings(without(keys) as ConfigMap).problems).toHaveLength(1);
    const alone = clusterSettings({ keyName: undefined, podNetworkCIDRs: undefined });
    expect(Object.keys(alone.data ?? {})).toEqual(NEEDED_SETTINGS.map(([key]) => key));
    expect(readClusterSettings(alone).problems).toBeUndefined();
  });

  test('by an example that is right', () => {
    const [settings, secret, machine] = parseManifests(
      readFileSync(join(import.meta.dirname, '../../../../deploy/examples/mirantis.yaml'), 'utf8'),
    ) as [ConfigMap, Secret & { stringData: object }, ClusterMachine & { apiVersion: string; kind: string }];
    const { kind, apiVersion, metadata } = machine;

    expect({ kind, apiVersion }).toEqual({ kind: 'Machine', apiVersion: `${CLUSTER_GROUP}/${CLUSTER_VERSION}` });
    expect(metadata.labels?.[PROVIDER_LABEL]).toBe(SERVED_PROVIDER);
    expect([settings, secret].map((one) => one.metadata.name)).toEqual([
      clusterNameOf(machine),
      clusterNameOf(machine),
    ]);
    expect(readProviderValue(machine).problems).toBeUndefined();
    expect(readClusterSettings(settings).problems).toBeUndefined();
    expect(Object.keys(secret.stringData)).toEqual(expect.arrayContaining(['authURL', 'userData']));
  });

  test('of the fields', () => {
    const { value } = readProviderValue(clusterMachine());
    const { server, ...others } = value ?? {};
    const read = [...Object.keys(others), ...Object.keys(server ?? {})].map((name) =>
      name === 'rootDiskSize' ? 'bootFromVolume' : name,
    );

    expect(new Set(rows('field').map(([field]) => field))).toEqual(new Set(read));
  });

  test('of the status', () => {
    const known = { machine: clusterMachine(), ours: undefined, node: undefined, problems: [], upgradeIndex: 1 };
    const members = Object.keys(providerStatusOf(known)).filter((name) => name !== 'apiVersion' && name !== 'kind');

    expect(new Set(rows('field').map(([field]) => field))).toEqual(new Set(members));
  });
});
