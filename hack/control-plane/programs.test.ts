import { readFileSync } from 'node:fs';

import { describe, expect, test } from '@jest/globals';

import { isAtLeast, moduleDirectory, parseVersion, pinnedVersion, PROGRAMS, programSpec } from './programs.ts';

describe('versions of programs', () => {
  test.each([
    { output: 'Kubernetes v1.36.3', version: '1.36.3' },
    { output: 'etcd Version: 3.6.16\nGit SHA: none\nGo Version: go1.26.8', version: '3.6.16' },
    { output: 'prometheus, version 3.13.5 (branch: HEAD, revision: non-git)', version: '3.13.5' },
    { output: 'Client Version: v1.34.2-rc.0\nKustomize Version: v5.8.1', version: '1.34.2' },
    { output: 'go version 1.26 linux/amd64', version: '1.26' },
    { output: 'no version here', version: undefined },
  ])('reads $version from "$output"', ({ output, version }) => {
    expect(parseVersion(output)).toBe(version);
  });

  test.each([
    { version: '1.34.0', expected: true },
    { version: '1.36.3', expected: true },
    { version: '2.0', expected: true },
    { version: '1.33.99', expected: false },
    { version: '1.4', expected: false },
    { version: '0.99.1', expected: false },
  ])('$version is at least 1.34: $expected', ({ version, expected }) => {
    expect(isAtLeast(version, [1, 34])).toBe(expected);
  });

  test.each(PROGRAMS)('$name is pinned by a go.mod, at a version that would be taken from elsewhere too', (spec) => {
    const version = pinnedVersion(spec);

    expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(isAtLeast(version, spec.oldest)).toBe(true);
  });

  test('Prometheus is called by its release, not by the version of its module', () => {
    const spec = programSpec('promtool');
    const goMod = readFileSync(`${moduleDirectory(spec)}/go.mod`, 'utf8');
    const [, minor, patch] = /prometheus\/prometheus v0\.3(\d\d)\.(\d+)/.exec(goMod) ?? [];

    expect(pinnedVersion(spec)).toBe(`3.${Number(minor)}.${patch}`);
  });

  test('the staging modules of Kubernetes are replaced by the same minor and patch', () => {
    const kubernetes = programSpec('kube-apiserver');
    const wanted = `v0.${pinnedVersion(kubernetes).split('.').slice(1).join('.')}`;

    const goMod = readFileSync(`${moduleDirectory(kubernetes)}/go.mod`, 'utf8');

    const replaced = [...goMod.matchAll(/=> \S+ (\S+)$/gm)].map(([, version]) => version);
    expect(replaced.length).toBeGreaterThan(25);
    expect(new Set(replaced)).toEqual(new Set([wanted]));
  });
});
