import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';

import * as resources from '../kube/resource.ts';
import { definitionFile } from './definitions.ts';

const ROOT = join(import.meta.dirname, '../..');

test('each kind that Kubernetes does not have is defined by a file that is shipped', () => {
  const all = Object.values(resources).flatMap((one) => (typeof one === 'object' ? [one] : []));
  const files = all.flatMap((one) => definitionFile(one) ?? []);

  expect(files).toContain('crds/mirantis/cluster.k8s.io_machines.yaml');
  expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  expect(definitionFile(resources.nodes)).toBeUndefined();
});
