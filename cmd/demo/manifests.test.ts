import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { expect, test } from '@jest/globals';

import { parseManifests } from '../../hack/control-plane/apply.ts';
import type { ClusterAPIMachine } from '../../pkg/worlds/cluster-api/api/machine.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import type { DemoOptions } from './command.ts';
import { writeDefinitions, writeManifests } from './manifests.ts';
import { thingsToTry } from './things-to-try.ts';

const OPTIONS: DemoOptions = {
  machines: 3,
  driver: 'local',
  api: 'cluster-api',
  autoscaler: false,
  once: false,
  lines: false,
  tour: false,
  yes: false,
  binaries: '',
  binariesChecksum: '',
};
const TOKEN = '0a1b2c.0123456789abcdef';

/** What `use` finds in the folder of a demo for Cluster API. */
function written(use: (directory: string) => void): void {
  const directory = mkdtempSync(path.join(tmpdir(), 'manifests-'));
  try {
    const first = { token: TOKEN, userData: `token: ${TOKEN}` };
    writeManifests(directory, OPTIONS, { userData: 'x', first });
    writeDefinitions(directory);
    use(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const read = (directory: string, name: string): readonly KubeObject[] =>
  parseManifests(readFileSync(path.join(directory, 'manifests', name), 'utf8')) as never;

test('the demo for Cluster API brings a Machine without a MachineDeployment, with all that it names', () => {
  written((directory) => {
    const objects = read(directory, 'first-machine.yaml') as readonly (KubeObject & Partial<Record<string, unknown>>)[];
    const [token, secret, infrastructure, machine] = objects;
    const [cluster] = read(directory, 'cluster-api.yaml');
    const { spec } = machine as ClusterAPIMachine;

    expect(token).toMatchObject({
      metadata: { name: 'bootstrap-token-0a1b2c', namespace: 'kube-system' },
      stringData: { 'token-id': '0a1b2c', 'token-secret': '0123456789abcdef' },
    });
    expect(secret?.['stringData']).toEqual({ value: `token: ${TOKEN}` });
    expect(spec).toMatchObject({
      clusterName: cluster?.metadata.name,
      bootstrap: { dataSecretName: secret?.metadata.name },
      infrastructureRef: { kind: infrastructure?.['kind'], name: infrastructure?.metadata.name },
    });
  });
});

test('what is to be tried there names files that there are, and Cluster API only there', () => {
  const places = { machines: 3, autoscaler: false, manager: 'http://127.0.0.1:1' } as const;
  written((directory) => {
    const text = thingsToTry({ ...places, directory, driver: 'local', api: 'cluster-api' });
    const files = [...text.matchAll(/manifests\/(\S+)/g)].map(([, name = '']) => name);

    expect(files).toContain('first-machine.yaml');
    for (const name of files) expect(read(directory, name)).not.toEqual([]);
    expect(text).toContain('describe cluster-api-machine first');
  });
  expect(thingsToTry({ ...places, directory: 'd', driver: 'local', api: 'machine' })).not.toContain('cluster');
});

test('kubectl shows more of what the provider of the demo has than its age', () => {
  written((directory) => {
    const columns = read(directory, 'provider.yaml').map((one) => {
      const { spec } = one as KubeObject & {
        spec: { versions: readonly { additionalPrinterColumns: readonly { name: string }[] }[] };
      };
      return spec.versions[0]?.additionalPrinterColumns.map(({ name }) => name);
    });

    expect(columns).toEqual([
      ['Machine', 'ProviderID', 'Ready', 'Message', 'Age'],
      ['Size', 'Age'],
    ]);
  });
});
