import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { cachePath, resolveProgram, type BinariesOptions } from '../../hack/control-plane/binaries.ts';
import { livenessOf } from '../../hack/control-plane/process-identity.ts';
import { programSpec } from '../../hack/control-plane/programs.ts';

/** Programs and compilers here are shell scripts that say what the real ones say: the real build is what starts the server. */
describe('looking for a program', () => {
  let root: string;
  let options: BinariesOptions & { env: Record<string, string> };
  let messages: string[];

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'machinist-programs-'));
    messages = [];
    options = {
      env: { HOME: root, PATH: `${join(root, 'bin')}:/usr/bin:/bin` },
      log: (line) => messages.push(line),
      progress: ({ message }) => messages.push(message),
    };
  });

  afterEach(() => rmSync(root, { recursive: true, force: true }));

  /** A go that leaves a program at -o and counts its builds. */
  function goThatBuilds(): void {
    const build = `while [ "$1" != -o ]; do shift; done; echo x >> ${root}/builds; sleep 0.3; echo program > "$2"`;
    script(join(root, 'bin/go'), `[ "$1" = version ] && { echo "go version go1.26.8 linux/amd64"; exit; }\n${build}`);
  }

  /** A go that fails to build with these words. */
  function goThatSays(words: string): void {
    script(
      join(root, 'bin/go'),
      `[ "$1" = version ] && { echo "go version go1.26.8 linux/amd64"; exit; }\necho "${words}" >&2; exit 1`,
    );
  }

  test('takes it from KUBEBUILDER_ASSETS before PATH', async () => {
    const path = script(join(root, 'assets/kubemark'), 'echo Kubernetes v1.35.1');
    script(join(root, 'bin/kubemark'), 'echo Kubernetes v1.36.0');
    options.env['KUBEBUILDER_ASSETS'] = join(root, 'assets');

    const program = await resolveProgram('kubemark', options);

    expect(program).toEqual({ name: 'kubemark', path, version: '1.35.1', source: 'KUBEBUILDER_ASSETS' });
  });

  test('takes it from PATH when it is new enough', async () => {
    const path = script(join(root, 'bin/kubemark'), 'echo Kubernetes v1.34.0');

    const program = await resolveProgram('kubemark', options);

    expect(program).toEqual({ name: 'kubemark', path, version: '1.34.0', source: 'PATH' });
  });

  test('does not take an old one, says so and builds', async () => {
    script(join(root, 'bin/kubemark'), 'echo Kubernetes v1.33.9');
    goThatBuilds();

    const program = await resolveProgram('kubemark', options);

    expect(program).toMatchObject({ source: 'build', path: cachePath(programSpec('kubemark'), options.env) });
    expect(messages[0]).toMatch(/^not using .*kubemark from PATH: it is 1.33.9, and 1.34 or newer is needed$/);
    expect(messages[1]).toMatch(/^building kubemark \d.* with Go \(about 1 min, once\)…$/);
    expect(messages.at(-1)).toMatch(/^built kubemark \d.* in \d+ s$/);
  });

  test('builds once and finds it in the cache afterwards', async () => {
    goThatBuilds();
    await resolveProgram('kubemark', options);
    rmSync(join(root, 'bin/go'));

    const again = await resolveProgram('kubemark', options);

    expect(again.source).toBe('cache');
    expect(readFileSync(again.path, 'utf8')).toBe('program\n');
  });

  test('builds once when two ask at the same time', async () => {
    goThatBuilds();

    const programs = await Promise.all([resolveProgram('kubemark', options), resolveProgram('kubemark', options)]);

    expect(programs.map(({ source }) => source).toSorted()).toEqual(['build', 'cache']);
    expect(readFileSync(join(root, 'builds'), 'utf8')).toBe('x\n');
    expect(messages).toContainEqual(expect.stringMatching(/^waiting for process \d+, which builds/));
  });

  test('breaks the lock of a process that is dead', async () => {
    goThatBuilds();
    const pid = Number(execFileSync('sh', ['-c', 'echo $$'], { encoding: 'utf8' }));
    const scope = `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${execFileSync('readlink', ['/proc/self/ns/pid'], { encoding: 'utf8' }).trim()}`;
    const dead = { pid, startTime: '1', scope };
    const lock = join(root, '.cache/machinist/control-plane/build.lock');
    mkdirSync(dirname(lock), { recursive: true });
    writeFileSync(lock, JSON.stringify(dead));
    expect(livenessOf(dead)).toBe('dead');

    const program = await resolveProgram('kubemark', options);

    expect(program.source).toBe('build');
    expect(existsSync(lock)).toBe(false);
  });

  test('leaves nothing behind when the build is aborted', async () => {
    script(
      join(root, 'bin/go'),
      '[ "$1" = version ] && { echo "go version go1.26.8 linux/amd64"; exit; }\nexec sleep 60',
    );
    const abort = new AbortController();
    const progress = (): void => abort.abort(new Error('changed my mind'));

    const building = resolveProgram('kubemark', { ...options, progress, signal: abort.signal });

    await expect(building).rejects.toThrow('changed my mind');
    expect(existsSync(join(root, '.cache/machinist/control-plane/build.lock'))).toBe(false);
  });

  test('says what to install when there is no Go', async () => {
    options.env['PATH'] = join(root, 'bin');

    const looking = resolveProgram('kubemark', options);

    await expect(looking).rejects.toMatchObject({
      code: 'go-missing',
      message: expect.stringMatching(
        /^kubemark \S+ was not found .* install Go 1\.26 or newer, or take it from elsewhere \(--binaries/,
      ),
    });
  });

  test('says what to install when Go is too old', async () => {
    script(join(root, 'bin/go'), 'echo "go version go1.25.3 linux/amd64"');

    const looking = resolveProgram('kubemark', options);

    await expect(looking).rejects.toMatchObject({
      code: 'go-too-old',
      message: expect.stringMatching(/^Go 1\.25\.3 is too old .* install Go 1\.26 or newer/),
    });
  });

  test('says which folder cannot be written', async () => {
    goThatBuilds();
    writeFileSync(join(root, 'file'), '');
    options.env['XDG_CACHE_HOME'] = join(root, 'file/cache');

    const looking = resolveProgram('kubemark', options);

    await expect(looking).rejects.toMatchObject({
      code: 'not-writable',
      message: expect.stringContaining('file/cache'),
    });
  });

  test.each([
    {
      words: 'compile: writing output: write /tmp/x: no space left on device',
      code: 'disk-full',
      says: 'disk is full',
    },
    { words: 'go: x: dial tcp: lookup proxy: no such host', code: 'no-network', says: 'could not be downloaded' },
    { words: 'module lookup disabled by GOPROXY=off', code: 'no-network', says: 'GOPROXY' },
    { words: 'x.go:1:1: syntax error', code: 'build-failed', says: 'syntax error' },
  ])('tells $code from what Go says: $words', async ({ words, code, says }) => {
    goThatSays(words);

    const looking = resolveProgram('kubemark', options);

    await expect(looking).rejects.toMatchObject({ code, message: expect.stringContaining(says) });
    expect(existsSync(cachePath(programSpec('kubemark'), options.env))).toBe(false);
  });
});

function script(path: string, lines: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `#!/bin/sh\n${lines}\n`);
  chmodSync(path, 0o755);
  return path;
}
