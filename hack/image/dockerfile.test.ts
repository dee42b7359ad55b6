import { readFileSync } from 'node:fs';
import path from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { stagesOf } from './dockerfile.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const [build, ...images] = stagesOf(readFileSync(path.join(ROOT, 'Dockerfile'), 'utf8'));

test('a Dockerfile is read stage by stage, without comments, and with continued lines joined', () => {
  expect(stagesOf('# a comment\nFROM a AS b\nRUN x \\\n  && y\n# RUN z\nFROM c:d AS e\nUSER 1\n')).toEqual([
    { base: 'a', name: 'b', steps: [{ name: 'RUN', text: 'x && y' }] },
    { base: 'c:d', name: 'e', steps: [{ name: 'USER', text: '1' }] },
  ]);
});

test('a stage without a name is refused', () => {
  expect(() => stagesOf('FROM a\n')).toThrow('FROM a: AS and a name are expected');
});

test('the images are those of the drivers and, by default, of the manager', () => {
  expect(build?.name).toBe('build');
  expect(images.map(({ name }) => name)).toEqual([
    'sim-driver',
    'kwok-driver',
    'openstack-driver',
    'cluster-api-driver',
    'ironcore-driver',
    'manager',
  ]);
});

describe.each(images)('the image of $name', ({ base, name, steps }) => {
  const textOf = (instruction: string): string | undefined => steps.findLast((step) => step.name === instruction)?.text;

  test('has a base without a shell, and runs as a user that is not root, by number', () => {
    expect(base).toMatch(/\/distroless\/nodejs24-debian13:nonroot$/);
    expect(textOf('USER')).toBe('65532:65532');
  });

  test('is given its own bundle and nothing else, and starts a program of it', () => {
    const [, bundle] =
      /^node hack\/image\/main\.ts (\S+) /.exec(
        build?.steps.find(({ text }) => text.includes(`dist/${name} `))?.text ?? '',
      ) ?? [];

    expect(steps.filter((step) => ['COPY', 'ADD', 'RUN'].includes(step.name)).map(({ text }) => text)).toEqual([
      `--from=build /src/${bundle} ./`,
    ]);
    expect(JSON.parse(textOf('ENTRYPOINT') ?? '[]')).toEqual([
      '/nodejs/bin/node',
      expect.stringMatching(
        /^\/app\/cmd\/(machinist|sim-driver|kwok-driver|openstack-driver|cluster-api-driver|ironcore-driver)\/main\.js$/,
      ),
    ]);
  });
});
