import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import type { FromMcmProviderOptions } from './command.ts';
import { fromMcmProvider } from './from-mcm-provider.ts';
import { MCM_PROVIDERS } from './mcm-providers.ts';

const AWS = 'github.com/gardener/machine-controller-manager-provider-aws';

let place: string;
beforeEach(async () => {
  place = await mkdtemp(path.join(tmpdir(), 'from-mcm-'));
});
afterEach(async () => {
  await rm(place, { recursive: true });
});

/** Exit code and lines of the command, which writes to `out`. */
async function run(
  module: string | undefined,
  options: Partial<FromMcmProviderOptions> = {},
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<{ readonly code: number; readonly text: string }> {
  const lines: string[] = [];
  const say = (line: string): void => void lines.push(line);
  const all = { out: path.join(place, 'out'), import: [], expression: undefined, build: false, ...options };
  const code = await fromMcmProvider(module, all, { out: say, err: say, env });
  return { code, text: lines.join('\n') };
}

/** A file that the command has written. */
async function written(file: string): Promise<string> {
  return await readFile(path.join(place, 'out', file), 'utf8');
}

/** A PATH whose only command is `go` of a version, or nothing. The command `fails` of it fails. */
async function pathWithGo(version: string | undefined, fails = ''): Promise<string> {
  const bin = await mkdtemp(path.join(tmpdir(), 'go-'));
  if (version !== undefined) {
    await writeFile(path.join(bin, 'go'), `#!/bin/sh\necho ${version}\n[ "$1" != "${fails}" ]\n`);
    await chmod(path.join(bin, 'go'), 0o755);
  }
  return bin;
}

describe('the driver of a provider of machine-controller-manager', () => {
  test('is a program of a known provider, with the library beside it and the commands that start it', async () => {
    const { code, text } = await run(`${AWS}@v0.28.0`);

    expect(code).toBe(0);
    expect(await written('main.go')).toContain('mcmprovider.Serve(aws.NewAWSDriver(&cpi.ClientProvider{})');
    expect(await written('go.mod')).toMatch(new RegExp(`${AWS} v0\\.28\\.0[^]*=> "\\./mcm-provider"`));
    expect(await written('class.yaml')).toContain('provider: AWS\n');
    expect(await written('secret.yaml')).toContain("providerAccessKeyId: ''\n");
    expect(await written('secret.yaml')).toContain('  userData: |\n');
    expect(await written('class.yaml')).toMatch(/secretRef:\n {2}name: aws\n/);
    expect(await written('Dockerfile')).toMatch(/CGO_ENABLED=0 go build [^]*USER 65532:65532\n/);
    expect(await written('Dockerfile')).not.toContain('go mod vendor');
    const library = await readdir(path.join(place, 'out/mcm-provider'));
    expect(library).toContain('service.go');
    expect(library.filter((file) => /_test\.go$|testdata/.test(file))).toEqual([]);
    expect(await written('mcm-provider/go.mod')).toContain('module machinist.example/mcm-provider');
    expect(text).toContain('go mod tidy');
    expect(text).toContain('--driver=AWS=unix:///tmp/aws.sock');
  });

  test.each([
    [
      'ironcore-dev/machine-controller-manager-provider-ironcore-metal',
      [
        '"flag"',
        'kubeconfig := ""',
        'Flags: func(set *flag.FlagSet) {',
        'func(ctx context.Context) (driver.Driver, error)',
        'return metal.NewDriver(access, namespace, policy), nil',
        'os.Exit(mcmprovider.ServeNew(provider, options))',
      ],
      [],
    ],
    [
      'gardener/machine-controller-manager-provider-openstack',
      [
        'func(_ context.Context) (driver.Driver, error)',
        '"k8s.io/apimachinery/pkg/runtime"',
        'install.AddToScheme(scheme)',
      ],
      ['"flag"'],
    ],
    [
      'gardener/machine-controller-manager-provider-alicloud',
      [
        '[][]string{{"alicloudAccessKeyID", "accessKeyID"}, {"alicloudAccessKeySecret", "accessKeySecret"}}',
        'Provider:      "Alicloud"',
      ],
      [],
    ],
    [
      'gardener/machine-controller-manager-provider-vsphere',
      ['Serve(mcmprovider.Complete(vsphere.NewVspherePlugin()),'],
      ['"context"', 'ListScope', 'FindsByID'],
    ],
    [
      'gardener/machine-controller-manager-provider-equinix-metal',
      ['Serve(mcmprovider.Complete(metal.NewProvider(&spi.PluginSPIImpl{})),', 'FindsByID:     true'],
      ['ListScope'],
    ],
    [
      'stackitcloud/machine-controller-manager-provider-stackit',
      ['mcmprovider.ListScopeClass', '[]string{"InitializeMachine", "GetVolumeIDs"}'],
      ['Complete', 'FindsByID'],
    ],
  ])('of %s is made as its own main does it', async (module, has, lacks) => {
    expect(await run(`github.com/${module}@v1.0.0`)).toMatchObject({ code: 0 });

    const main = await written('main.go');
    for (const line of has) expect(main).toContain(line);
    for (const line of lacks) expect(main).not.toContain(line);
  });

  test('can be that of any provider whose constructor is named', async () => {
    const own = { import: ['acme=/v2/pkg/driver'], expression: 'acme.New()', provider: 'Acme' };

    expect(await run('example.com/mcm-provider-acme@v1.0.0', own)).toMatchObject({ code: 0 });

    const main = await written('main.go');
    expect(main).toContain('acme "example.com/mcm-provider-acme/v2/pkg/driver"');
    expect(main).toContain('Serve(acme.New(), mcmprovider.Options{');
    expect(main).toContain('Provider: "Acme"');
  });

  test('of a known provider with another constructor has nothing of what goes with its own', async () => {
    const own = { import: ['fake=/pkg/fake'], expression: 'fake.New()' };

    expect(await run('github.com/gardener/machine-controller-manager-provider-openstack@v1.0.0', own)).toMatchObject({
      code: 0,
    });

    expect(await written('main.go')).toMatch(/\tos\.Exit\(mcmprovider\.Serve\(fake\.New\(\), [^]*"OpenStack"/);
    expect(await written('main.go')).not.toMatch(/install|runtime/);
  });

  test('says of its provider what the library must know', async () => {
    const openstack = 'github.com/gardener/machine-controller-manager-provider-openstack@v0.26.0';

    expect(await run(openstack, {})).toMatchObject({ code: 0 });

    const main = await written('main.go');
    expect(main).toContain('CompletesCreations: true,\n');
    expect(main).toContain('Unimplemented:      []string{"InitializeMachine"},\n');
  });

  test('may import an internal package of its provider, by the name of its module', async () => {
    const own = {
      import: ['/pkg/gcp', '/pkg/gcp/internal'],
      expression: 'gcp.NewGCPPlugin(&internal.PluginSPIImpl{})',
    };

    expect(await run('example.com/gcp@v1.0.0', own)).toMatchObject({ code: 0 });

    expect(await written('go.mod')).toMatch(/^module example\.com\/gcp\/pkg\/gcp\/gcp-driver$/m);
  });

  test.each([
    [undefined, {}, /^error: the module is missing: expected MODULE@VERSION, such as .*, or --source with a checkout$/],
    [AWS, {}, /^error: "github\S+" is not a module with a version: expected MODULE@VERSION/],
    [
      'example.com/other@v1.0.0',
      {},
      /^error: example\.com\/other is not a known provider: name .* with --import and --constructor/,
    ],
    ['example.com/other@v1.0.0', { expression: 'other.New()' }, /is not a known provider/],
    [
      'example.com/other@v1.0.0',
      { import: ['/a'], expression: 'a.New()', provider: 'A"B' },
      /^error: --provider "A\\"B": expected letters, digits, /,
    ],
    [`${AWS}@v1`, { import: ['a=b=c'] }, /^error: --import "a=b=c": expected PATH or ALIAS=PATH/],
    [undefined, { source: '/nowhere' }, /^error: --source \/nowhere: not a checkout of a Go module: ENOENT/],
  ])(
    '%s with %j is refused with what is wrong and the remedy, and nothing is created',
    async (module, options, says) => {
      const { code, text } = await run(module, options);

      expect(code).toBe(1);
      expect(text).toMatch(says);
      expect(await readdir(place)).toEqual([]);
    },
  );

  test.each([
    ['example.com/Other_@v1.0.0', 'other'],
    ['example.com/machine-controller-manager-provider-my_Cloud.v2/v3@v3.0.0', 'my-cloud-v2'],
    ['example.com/2048@v1.0.0', 'provider'],
    [`example.com/${'a'.repeat(49)}-${'b'.repeat(20)}@v1.0.0`, 'a'.repeat(49)],
  ])('of %s has the name %s', async (module, name) => {
    const own = { import: ['/a'], expression: 'a.New()', provider: '1.0' };

    expect(await run(module, own)).toMatchObject({ code: 0 });

    expect(await written('main.go')).toContain(`Name:     "${name}"`);
    expect(await written('.gitignore')).toBe(`${name}-driver\n`);
    expect(await written('class.yaml')).toMatch(new RegExp(`name: ${name}\n[^]*provider: "1\\.0"\n`));
  });

  test('of a checkout has the version that goes with the path of its module, and the paths of the checkouts as Go finds them', async () => {
    const source = path.join(place, 'the source');
    const mcm = path.join(place, 'mcm');
    await Promise.all([mkdir(source), mkdir(mcm)]);
    await writeFile(path.join(source, 'go.mod'), 'module example.com/this/v3\n');
    await writeFile(path.join(mcm, 'go.mod'), 'module github.com/gardener/machine-controller-manager\n');
    await writeFile(path.join(source, 'go.sum'), 'example.com/rare v1.0.0 h1:abc=\n');
    const own = { import: ['/a'], expression: 'a.New()', mcmSource: mcm };

    expect(await run(undefined, { ...own, source: path.relative(process.cwd(), source) })).toMatchObject({ code: 0 });

    const mod = await written('go.mod');
    expect(mod).toContain('\texample.com/this/v3 v3.0.0\n');
    expect(mod).toContain(`replace example.com/this/v3 => "${source}"\n`);
    expect(mod).toContain(`replace github.com/gardener/machine-controller-manager => "${mcm}"\n`);
    expect(await written('main.go')).toContain('"example.com/this/v3/a"');
    expect(await written('go.sum')).toMatch(/^example\.com\/rare v1\.0\.0 h1:abc=\n[^]*google\.golang\.org\/grpc /);
    expect(await written('Dockerfile')).toContain('run "go mod vendor" first');
  });

  test('is not made with another checkout than that of machine-controller-manager', async () => {
    await writeFile(path.join(place, 'go.mod'), 'module example.com/this\n');

    expect((await run(`${AWS}@v0.28.0`, { mcmSource: place })).text).toMatch(
      /^error: --mcm-source \S+ is a checkout of example\.com\/this, not of github\.com\/gardener\/machine-controller-manager$/,
    );
  });

  test('is not that of another checkout than the module that is named', async () => {
    await mkdir(path.join(place, 'source'));
    await writeFile(path.join(place, 'source/go.mod'), 'module example.com/this\n');

    const { text } = await run('example.com/that', { source: path.join(place, 'source') });

    expect(text).toMatch(/^error: --source \S+ is a checkout of example\.com\/this, not of example\.com\/that$/);
  });

  test('names the versions that the library was compiled with', async () => {
    const library = await readFile(path.resolve(import.meta.dirname, '../../../packages/mcm-provider/go.mod'), 'utf8');

    await run(`${AWS}@v0.28.0`);

    const mod = await written('go.mod');
    for (const line of [/^go \S+$/m, /gardener\/machine-controller-manager v\S+$/m])
      expect(line.exec(mod)?.[0]).toBe(line.exec(library)?.[0]);
  });

  test('does not take the place of what is there', async () => {
    await mkdir(path.join(place, 'out'));
    await writeFile(path.join(place, 'out/mine'), '');

    expect((await run(`${AWS}@v0.28.0`)).text).toMatch(
      /^error: \S+out is not empty; choose another name, or remove it$/,
    );
    expect(await readdir(path.join(place, 'out'))).toEqual(['mine']);
  });

  test.each([
    [undefined, /^error: go is not on the PATH; install Go 1\.26 or newer, or write the files only, with --no-build$/],
    ['go1.25.3', /^error: go1\.25\.3 is too old; install Go 1\.26 or newer/],
  ])('is not written where it cannot be compiled, with Go %s', async (version, says) => {
    const bin = await pathWithGo(version);
    const { code, text } = await run(`${AWS}@v0.28.0`, { build: true }, { PATH: bin });
    await rm(bin, { recursive: true });

    expect(code).toBe(1);
    expect(text).toMatch(says);
    expect(await readdir(place)).toEqual([]);
  });

  test.each([
    [
      'mod',
      /^error: go mod tidy failed: [^]*nothing was created; use --source and --mcm-source with checkouts where /m,
    ],
    [
      'build',
      /^error: go build .* failed: [^]*nothing was created; check --import and --constructor against \S+ of \S+$/m,
    ],
  ])('whose go %s fails is not there, with what can be done about it', async (command, says) => {
    const bin = await pathWithGo('go1.26.0', command);
    const { code, text } = await run(`${AWS}@v0.28.0`, { build: true }, { PATH: bin });
    await rm(bin, { recursive: true });

    expect(code).toBe(1);
    expect(text).toMatch(says);
    expect(await readdir(place)).toEqual([]);
  });
});

test.each(Object.entries(MCM_PROVIDERS))(
  'the page about providers has a row for %s',
  async (module, { provider, listScope }) => {
    const page = await readFile(path.resolve(import.meta.dirname, '../../../docs/operations/mcm-providers.md'), 'utf8');

    const [, , accepts = '', lists = ''] =
      page
        .split('\n')
        .find((line) => line.startsWith(`| \`${module}\``))
        ?.split('|')
        .map((cell) => cell.trim()) ?? [];
    expect(accepts).toBe(provider === undefined ? 'any' : `\`${provider}\``);
    // By tags or labels of the class, which classes may share: that is no list of one class.
    expect(lists.startsWith('the class') ? 'class' : 'cluster').toBe(listScope);
  },
);
