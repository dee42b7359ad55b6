import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';

import * as own from '../../kube/client/resource.ts';
import { WORLDS } from '../../worlds/served.ts';
import { definitionFile } from './definitions.ts';

const ROOT = join(import.meta.dirname, '../../..');

test('each kind that Kubernetes does not have is defined by a file that is shipped', async () => {
  const others = WORLDS.map(({ name }): Promise<typeof own> => import(`../../worlds/${name}/api/resources.ts`));
  const all = [own, ...(await Promise.all(others))]
    .flatMap((module) => Object.values(module))
    .flatMap((one) => (typeof one === 'object' ? [one] : []));
  const files = all.flatMap((one) => definitionFile(one) ?? []);

  expect(files).toEqual(
    expect.arrayContaining([
      'crds/machine.sapcloud.io_machines.yaml',
      'crds/mirantis/cluster.k8s.io_machines.yaml',
      'crds/cluster-api/cluster.x-k8s.io_clusters.yaml',
      'crds/ironcore/storage.ironcore.dev_volumes.yaml',
    ]),
  );
  expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  expect(definitionFile(own.nodes)).toBeUndefined();
});
