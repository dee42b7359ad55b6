import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { resolveProgram, type BinariesOptions } from '../../hack/control-plane/binaries.ts';

const KUBERNETES = 'echo Kubernetes v1.36.3';
/** What envtest has. */
const ENVTEST = {
  etcd: 'echo etcd Version: 3.6.16',
  'kube-apiserver': KUBERNETES,
  kubectl: 'echo Client Version: v1.36.3',
};

/** Programs are shell scripts here; the demo is run from real ones in the e2e tests. */
describe('programs that were built elsewhere', () => {
  let root: string;
  let options: BinariesOptions & { env: Record<string, string> };
  let lines: string[];
  /** What the test's own server has at a path; a function answers for itself. */
  let served: Map<string, Buffer | string>;
  let requests: string[];
  let cutAt: number | undefined;
  let server: Server;
  let url: string;

  beforeEach(async () => {
    root = mkdtempSync(join(tmpdir(), 'machinist-given-'));
    lines = [];
    requests = [];
    served = new Map();
    cutAt = undefined;
    server = createServer(({ url: path = '' }, response) => {
      requests.push(path);
      const body = served.get(path.split('?')[0] ?? '');
      if (body === undefined) return void response.writeHead(404).end();
      response.setHeader('content-length', Buffer.byteLength(body));
      if (cutAt === undefined || path.includes('sha')) return void response.end(body);
      response.write(body.slice(0, cutAt), () => response.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    options = { env: { HOME: root, PATH: '/usr/bin:/bin' }, log: (line) => lines.push(line) };
  });

  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    rmSync(root, { recursive: true, force: true });
  });

  const folderOf = (programs: Readonly<Record<string, string>>): string => {
    const folder = mkdtempSync(join(root, 'programs-'));
    for (const [name, does] of Object.entries(programs)) script(join(folder, name), does);
    return folder;
  };
  /** Serves an archive in the layout of envtest's. */
  const serveArchive = (programs: Readonly<Record<string, string>> = ENVTEST): Buffer => {
    const folder = folderOf({});
    for (const [name, does] of Object.entries(programs)) script(join(folder, 'controller-tools/envtest', name), does);
    const archive = execFileSync('tar', ['-czf', '-', '-C', folder, '.']);
    served.set('/envtest.tar.gz', archive);
    return archive;
  };
  /** What is left of downloads. */
  const kept = (): readonly string[] => {
    const downloads = join(root, '.cache/machinist/control-plane/downloads');
    return existsSync(downloads) ? readdirSync(downloads) : [];
  };
  const resolve = (name: 'etcd' | 'kube-apiserver' | 'kubectl' | 'kubemark') => resolveProgram(name, options);

  test('are taken from a folder, before those of KUBEBUILDER_ASSETS', async () => {
    const folder = folderOf(ENVTEST);
    options.env['KUBEBUILDER_ASSETS'] = folderOf(ENVTEST);
    options.env['MACHINIST_BINARIES'] = folder;

    expect(await resolve('etcd')).toEqual({
      name: 'etcd',
      path: join(folder, 'etcd'),
      version: '3.6.16',
      source: 'MACHINIST_BINARIES',
    });
  });

  test('are looked for elsewhere if envtest does not have them', async () => {
    options.env['MACHINIST_BINARIES'] = folderOf(ENVTEST);
    options.env['KUBEBUILDER_ASSETS'] = folderOf({ kubemark: KUBERNETES });

    expect(await resolve('kubemark')).toMatchObject({ source: 'KUBEBUILDER_ASSETS' });
  });

  const elf = (machine: number): Buffer => {
    const head = Buffer.alloc(64);
    head.write('7f454c460201', 'hex');
    head.writeUInt16LE(machine, 18);
    return head;
  };
  const OTHER = process.arch === 'x64' ? { machine: 183, name: 'arm64' } : { machine: 62, name: 'x64' };

  test.each([
    { what: 'none', prepare: (file: string) => rmSync(file), says: /^There is no etcd in \S+: name a folder/ },
    {
      what: 'one that is too old',
      prepare: (file: string) => script(file, 'echo etcd Version: 3.4.2'),
      says: /it is 3\.4\.2, and 3\.5 or newer is needed\. Put a program/,
    },
    {
      what: 'one that is not executable',
      prepare: (file: string) => chmodSync(file, 0o644),
      says: /it is not executable \(chmod \+x \S+etcd\)/,
    },
    {
      what: 'one for another processor',
      prepare: (file: string) => writeFileSync(file, elf(OTHER.machine)),
      says: new RegExp(`it was built for linux ${OTHER.name}, and this host is linux ${process.arch}`),
    },
    {
      what: 'an empty one',
      prepare: (file: string) => writeFileSync(file, ''),
      says: /it is empty, or not a file/,
    },
    {
      what: 'one that fails',
      prepare: (file: string) => script(file, 'exit 1'),
      says: /it does not report its version, and 3\.5 or newer is needed/,
    },
  ])('are refused with the remedy when the folder has $what', async ({ prepare, says }) => {
    const folder = folderOf(ENVTEST);
    prepare(join(folder, 'etcd'));
    options.env['MACHINIST_BINARIES'] = folder;

    await expect(resolve('etcd')).rejects.toMatchObject({
      code: 'binaries-unfit',
      message: expect.stringMatching(says),
    });
  });

  test('are not taken from KUBEBUILDER_ASSETS if they are for another processor, and the reason is said', async () => {
    const assets = folderOf(ENVTEST);
    writeFileSync(join(assets, 'etcd'), elf(OTHER.machine));
    options.env['KUBEBUILDER_ASSETS'] = assets;

    await expect(resolve('etcd')).rejects.toMatchObject({ code: 'go-missing' });
    expect(lines).toEqual([expect.stringContaining(`from KUBEBUILDER_ASSETS: it was built for linux ${OTHER.name}`)]);
  });

  test('are refused when there is no such folder', async () => {
    options.env['MACHINIST_BINARIES'] = join(root, 'none');

    await expect(resolve('kubemark')).rejects.toMatchObject({
      code: 'binaries-unfit',
      message: expect.stringMatching(/none is not a folder: --binaries/),
    });
  });

  test.each(['sha256', 'sha512'])(
    'are downloaded once, from an archive with a file of its %s beside it',
    async (algorithm) => {
      const archive = serveArchive();
      served.set(`/envtest.tar.gz.${algorithm}`, `${hashOf(archive, algorithm)}  envtest.tar.gz\n`);
      options.env['MACHINIST_BINARIES'] = `${url}/envtest.tar.gz?key=secret`;

      const programs = await Promise.all([resolve('etcd'), resolve('kube-apiserver'), resolve('kubectl')]);

      expect(programs.map(({ version, source }) => `${version} ${source}`)).toEqual([
        '3.6.16 MACHINIST_BINARIES',
        '1.36.3 MACHINIST_BINARIES',
        '1.36.3 MACHINIST_BINARIES',
      ]);
      expect(requests.filter((path) => path.startsWith('/envtest.tar.gz?'))).toHaveLength(1);
      expect(kept()).toHaveLength(1);
      expect(lines).toContain(`downloading ${url}/envtest.tar.gz…`);
      expect(lines.join('\n')).not.toContain('secret');
    },
  );

  test('are downloaded with a checksum that the user names, without one of the server', async () => {
    options.env['MACHINIST_BINARIES_CHECKSUM'] = `sha256:${hashOf(serveArchive())}`;
    options.env['MACHINIST_BINARIES'] = `${url}/envtest.tar.gz`;

    expect(await resolve('kubectl')).toMatchObject({ version: '1.36.3' });
    expect(requests).toEqual(['/envtest.tar.gz']);
  });

  test('are downloaded one by one from a folder with SHA256SUMS, and only if it has them', async () => {
    const index = Object.entries(ENVTEST).map(([name, does]) => {
      const program = `#!/bin/sh\n${does}\n`;
      served.set(`/bin/${name}`, program);
      return `${hashOf(program)} *./${name}\n`;
    });
    served.set('/bin/SHA256SUMS', index.join(''));
    options.env['MACHINIST_BINARIES'] = `${url}/bin`;
    options.env['KUBEBUILDER_ASSETS'] = folderOf({ kubemark: KUBERNETES });

    const first = await resolve('etcd');
    const other = await resolve('kubemark');
    const asked = requests.length;
    await resolve('etcd');
    await resolve('kubemark');

    expect(first).toMatchObject({ version: '3.6.16', source: 'MACHINIST_BINARIES' });
    expect(other).toMatchObject({ source: 'KUBEBUILDER_ASSETS' });
    expect(requests.filter((path) => !path.includes('sha') && !path.includes('SHA'))).toEqual(['/bin/etcd']);
    expect(requests).toHaveLength(asked);
  });

  describe('of a download that is no good, nothing is kept', () => {
    test('when it is cut', async () => {
      const archive = serveArchive();
      served.set('/envtest.tar.gz.sha256', hashOf(archive));
      cutAt = archive.length - 10;
      options.env['MACHINIST_BINARIES'] = `${url}/envtest.tar.gz`;

      await expect(resolve('etcd')).rejects.toMatchObject({
        code: 'download-failed',
        message: expect.stringMatching(
          /envtest\.tar\.gz could not be downloaded \(.+\): check the network and the proxy/,
        ),
      });
      expect(kept()).toEqual([]);
    });

    test('when its checksum is another', async () => {
      serveArchive();
      served.set('/envtest.tar.gz.sha256', hashOf('something else'));
      options.env['MACHINIST_BINARIES'] = `${url}/envtest.tar.gz`;

      await expect(resolve('etcd')).rejects.toMatchObject({
        code: 'checksum-mismatch',
        message: expect.stringMatching(
          /^\S+envtest\.tar\.gz has the sha256 [0-9a-f]{64}, and [0-9a-f]{64} is expected: it was not kept/,
        ),
      });
      expect(kept()).toEqual([]);
    });

    test('when it is stopped', async () => {
      const archive = serveArchive();
      served.set('/envtest.tar.gz.sha256', hashOf(archive));
      options.env['MACHINIST_BINARIES'] = `${url}/envtest.tar.gz`;
      const stop = new AbortController();
      const reason = new Error('stopped by SIGINT');
      const log = (): void => stop.abort(reason);

      await expect(resolveProgram('etcd', { ...options, log, signal: stop.signal })).rejects.toBe(reason);
      expect(kept()).toEqual([]);
    });

    test('when it is no archive, or has no such programs', async () => {
      served.set('/envtest.tar.gz', 'no archive');
      options.env['MACHINIST_BINARIES_CHECKSUM'] = hashOf('no archive');
      options.env['MACHINIST_BINARIES'] = `${url}/envtest.tar.gz`;
      await expect(resolve('etcd')).rejects.toMatchObject({ code: 'binaries-unfit' });

      const other = serveArchive({ other: 'echo 1.0' });
      options.env['MACHINIST_BINARIES_CHECKSUM'] = hashOf(other);
      await expect(resolve('etcd')).rejects.toMatchObject({
        code: 'binaries-unfit',
        message: expect.stringContaining('has none of the programs'),
      });
      expect(kept()).toEqual([]);
    });
  });

  test('are downloaded although a process that did so before was killed', async () => {
    const archive = serveArchive();
    options.env['MACHINIST_BINARIES_CHECKSUM'] = hashOf(archive);
    options.env['MACHINIST_BINARIES'] = `${url}/envtest.tar.gz`;
    await resolve('etcd');
    const [key = ''] = kept();
    const downloads = join(root, '.cache/machinist/control-plane/downloads');
    rmSync(join(downloads, key), { recursive: true });
    mkdirSync(join(downloads, `${key}.tmp`));
    writeFileSync(join(downloads, `${key}.tmp`, 'archive.tar.gz'), archive.subarray(0, 10));

    expect(await resolve('etcd')).toMatchObject({ version: '3.6.16' });
    expect(kept()).toEqual([key]);
  });

  test.each([
    {
      what: 'an archive without any',
      at: '/envtest.tar.gz',
      checksum: '',
      says: /^There is no checksum for \S+: name it with --binaries-checksum/,
    },
    {
      what: 'a folder without any',
      at: '/bin/',
      checksum: '',
      says: /^There are no checksums at \S+: serve SHA256SUMS or SHA512SUMS/,
    },
    { what: 'something else', at: '/envtest.tar.gz', checksum: 'sha256:abc', says: /^"sha256:abc" is not a checksum/ },
    { what: 'one of a folder', at: '/bin/', checksum: 'a'.repeat(64), says: /^The checksum is of an archive/ },
  ])('are not downloaded without a checksum: $what', async ({ at, checksum, says }) => {
    serveArchive();
    options.env['MACHINIST_BINARIES'] = `${url}${at}`;
    options.env['MACHINIST_BINARIES_CHECKSUM'] = checksum;

    await expect(resolve('etcd')).rejects.toMatchObject({
      code: 'checksum-missing',
      message: expect.stringMatching(says),
    });
    expect(requests).not.toContain('/envtest.tar.gz');
  });

  test('are not downloaded unencrypted from another host with checksums of its own', async () => {
    options.env['MACHINIST_BINARIES'] = 'http://binaries.example.com/envtest.tar.gz';

    await expect(resolve('etcd')).rejects.toMatchObject({
      code: 'checksum-missing',
      message: expect.stringContaining('is not encrypted, so its checksums prove nothing'),
    });
  });
});

function script(path: string, lines: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `#!/bin/sh\n${lines}\n`);
  chmodSync(path, 0o755);
  return path;
}

function hashOf(content: Buffer | string, algorithm = 'sha256'): string {
  return createHash(algorithm).update(content).digest('hex');
}
