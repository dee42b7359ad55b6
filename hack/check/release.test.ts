import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { expect, test } from '@jest/globals';
import { parse } from 'yaml';

const ROOT = path.resolve(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');
const { version } = JSON.parse(read('package.json')) as { version: string };

test('the Deployment, the chart and the lockfile are of the version of package.json', () => {
  const deployment = parse(read('deploy/base/deployment.yaml')) as {
    spec: { template: { spec: { containers: { name: string; image: string }[] } } };
  };
  const manager = deployment.spec.template.spec.containers.find(({ name }) => name === 'machinist');

  expect(manager?.image).toBe(`machinist:${version}`);
  expect(parse(read('deploy/helm/machinist/Chart.yaml'))).toMatchObject({ version, appVersion: version });
  expect((JSON.parse(read('package-lock.json')) as { version: string }).version).toBe(version);
});

test('every image of this project that a manifest or a page names is of that version', () => {
  const files = globSync(['README.md', 'deploy/**/*.yaml', 'docs/operations/*.md'], { cwd: ROOT });
  const tags = files.flatMap((file) => [...read(file).matchAll(/\bmachinist(?:-[a-z-]+)?:(\d+\.\d+\.\d+)\b/g)]);

  expect(tags.length).toBeGreaterThan(15);
  expect(tags.filter(([, tag]) => tag !== version).map(([text]) => text)).toEqual([]);
});

test('the Deployment is the one that the autoscaler of Gardener looks for: by its name, in the namespace of the Machines', () => {
  const { metadata, spec } = parse(read('deploy/base/deployment.yaml')) as {
    metadata: { name: string; namespace: string };
    spec: { template: { spec: { containers: { name: string; args: string[] }[] } } };
  };
  const manager = spec.template.spec.containers.find(({ name }) => name === 'machinist');

  expect(metadata.name).toBe('machine-controller-manager');
  expect(metadata.namespace).toBe('machinist');
  expect(manager?.args).toContain('--namespace=$(POD_NAMESPACE)');
});

test('the changelog begins with what is not released yet', () => {
  const [first] = [...read('CHANGELOG.md').matchAll(/^## (.+)$/gm)].map(([, title]) => title);

  expect(first).toBe('Unreleased');
});
