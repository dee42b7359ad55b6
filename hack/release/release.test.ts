import { describe, expect, test } from '@jest/globals';

import { releaseNotes, withRelease } from './changelog.ts';
import { krewManifest } from './krew.ts';
import { isLater, withVersion } from './version.ts';

const CHANGELOG = `# Changelog

About.

## Unreleased

### Action required

- Do this.

### New and changed

- New.

### Fixed

## 0.1.0 (2026-11-26)

The first.

### Fixed

- Old.
`;

describe('the changelog of a release', () => {
  test('has the changes under the version and its date, without empty sections, and nothing under Unreleased', () => {
    expect(withRelease(CHANGELOG, '0.2.0', '2026-12-01')).toBe(
      CHANGELOG.replace(
        '## Unreleased\n\n### Action required\n\n- Do',
        '## Unreleased\n\n### Action required\n\n### New and changed\n\n### Fixed\n\n## 0.2.0 (2026-12-01)\n\n### Action required\n\n- Do',
      ).replace('- New.\n\n### Fixed\n', '- New.\n'),
    );
  });

  test.each([
    { changelog: CHANGELOG, version: '0.1.0', says: 'already has version 0.1.0' },
    { changelog: withRelease(CHANGELOG, '0.2.0', 'x'), version: '0.3.0', says: 'nothing under Unreleased' },
    { changelog: '# Changelog\n', version: '0.3.0', says: 'nothing under Unreleased' },
  ])('is refused: $says', ({ changelog, version, says }) => {
    expect(() => withRelease(changelog, version, 'x')).toThrow(says);
  });

  test('becomes notes that begin with what is required', () => {
    const swapped = CHANGELOG.replace('### Action required', '### X')
      .replace('### New and changed', '### Action required')
      .replace('### X', '### New and changed');

    expect(releaseNotes(withRelease(swapped, '0.2.0', 'x'), '0.2.0')).toBe(
      '# Machinist 0.2.0\n\n## Action required\n\n- New.\n\n## New and changed\n\n- Do this.\n',
    );
    expect(releaseNotes(CHANGELOG, '0.1.0')).toBe('# Machinist 0.1.0\n\nThe first.\n\n## Fixed\n\n- Old.\n');
    expect(() => releaseNotes(CHANGELOG, '0.1')).toThrow('has no version 0.1');
  });
});

test.each([
  { version: '0.2.0', than: '0.1.9', is: true },
  { version: '1.0.0', than: '0.9.9', is: true },
  { version: '0.1.10', than: '0.1.9', is: true },
  { version: '0.1.9', than: '0.1.9', is: false },
  { version: '0.1.8', than: '0.1.9', is: false },
  { version: '0.2', than: '0.1.9', is: false },
  { version: 'v0.2.0', than: '0.1.9', is: false },
])('$version follows $than: $is', ({ version, than, is }) => {
  expect(isLater(version, than)).toBe(is);
});

test.each([
  {
    file: 'package.json',
    text: '  "version": "0.1.0",\n  "x": "0.1.0"',
    want: '  "version": "0.2.0",\n  "x": "0.1.0"',
  },
  {
    file: 'package-lock.json',
    text: '"name": "machinist",\n  "version": "0.1.0",\n "node_modules/x": { "version": "0.1.0" }',
    want: '"name": "machinist",\n  "version": "0.2.0",\n "node_modules/x": { "version": "0.1.0" }',
  },
  { file: 'a/Chart.yaml', text: 'version: 0.1.0\nappVersion: 0.1.0\n', want: 'version: 0.2.0\nappVersion: 0.2.0\n' },
  {
    file: 'a.yaml',
    text: 'image: machinist:0.1.0\nimage: machinist-sim-driver:0.1.0\nimage: other:0.1.0\nimage: machinist:0.1.01',
    want: 'image: machinist:0.2.0\nimage: machinist-sim-driver:0.2.0\nimage: other:0.1.0\nimage: machinist:0.1.01',
  },
])('the version of $file is that of the release', ({ file, text, want }) => {
  expect(withVersion(file, text, '0.1.0', '0.2.0')).toBe(want);
});

test('krew installs the plugin from the package of npm', () => {
  const manifest = krewManifest({ version: '0.2.0', uri: 'https://x/y.tgz', sha256: 'abc', description: 'It.' });

  expect(manifest).toContain('  version: v0.2.0\n');
  expect(manifest).toContain('uri: https://x/y.tgz\n      sha256: abc\n');
  expect(manifest).toContain('bin: bin/machinist.cjs\n');
});
