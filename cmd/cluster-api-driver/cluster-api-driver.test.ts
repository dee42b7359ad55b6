import { readFileSync } from 'node:fs';
import path from 'node:path';

import { expect, test } from '@jest/globals';

import { parseProviderSpec } from '../../pkg/worlds/cluster-api/driver/provider-spec.ts';
import { clusterAPIDriverCommand } from './cluster-api-driver.ts';

const PAGE = path.resolve(import.meta.dirname, '../../docs/operations/cluster-api.md');
const [, SECTION = ''] =
  /^## MachineDeployments on infrastructure providers$([^]*?)^## /m.exec(readFileSync(PAGE, 'utf8')) ?? [];

test('the page names every flag of the driver, and which are required', () => {
  const rows = Array.from(SECTION.matchAll(/^\| `--([a-z-]+)` +\| (\*\*required\*\*)?/gm), ([, name, required]) => ({
    name,
    required: required !== undefined,
  }));

  const { options } = clusterAPIDriverCommand();
  expect(new Set(rows)).toEqual(
    new Set(options.map(({ long, mandatory }) => ({ name: long?.slice(2), required: mandatory }))),
  );
});

const SPEC: Readonly<Record<string, unknown>> = {
  apiVersion: 'cluster-api.machine.sapcloud.io/v1alpha1',
  kind: 'ClusterAPIProviderSpec',
  clusterName: 'c',
  infrastructureRef: { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'DevMachineTemplate', name: 'small' },
  bootstrap: { dataSecretName: 's' },
  version: 'v1.34.0',
  failureDomain: 'az1',
  machineMetadata: {},
};

test('the page names every member of the class, and which are required', () => {
  const isTaken = (spec: unknown): boolean => {
    try {
      parseProviderSpec(spec);
      return true;
    } catch {
      return false;
    }
  };
  const rows = Array.from(
    SECTION.matchAll(/^\| ((?:`[A-Za-z]+`(?:, )?)+) +\| (yes|no) /gm),
    ([, names = '', required]) => Array.from(names.matchAll(/`([A-Za-z]+)`/g), ([, name = '']) => ({ name, required })),
  ).flat();

  expect(isTaken(SPEC)).toBe(true);
  const wanted = Object.keys(SPEC).map((name) => ({
    name,
    required: isTaken({ ...SPEC, [name]: undefined }) ? 'no' : 'yes',
  }));
  expect(new Set(rows)).toEqual(new Set(wanted));
});
