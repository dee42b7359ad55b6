import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The real programs that the demo and the tests run. `kubemark` is the kubelet over an in-memory container runtime. */
export type ProgramName =
  | 'etcd'
  | 'kube-apiserver'
  | 'kube-controller-manager'
  | 'kubemark'
  | 'kubectl'
  | 'prometheus'
  | 'promtool'
  | 'helm'
  | 'kwok'
  | 'cluster-api'
  | 'clusterctl'
  | 'terminal';

/** Where a program comes from and how to tell its version. */
export interface ProgramSpec {
  readonly name: ProgramName;
  /** The Go module that pins it. */
  readonly module: 'etcd' | 'kubernetes' | 'prometheus' | 'helm' | 'kwok' | 'cluster-api' | 'terminal';
  /** The file that is built, from here, where the program is ours: it is built anew whenever it changes, and nowhere else to be had. */
  readonly source?: string;
  /** Module whose version in that go.mod is the program's version. */
  readonly goModule: string;
  /** What `go build` is given. */
  readonly goPackage: string;
  /** Build tags. */
  readonly tags?: readonly string[];
  /** Arguments that make it print its version. */
  readonly versionArgs: readonly string[];
  /** Oldest version that may be taken from elsewhere, as [major, minor]. */
  readonly oldest: readonly [number, number];
  /** How long a cold build takes on two cores, for the progress line. */
  readonly buildTakes: string;
  /** Built when somebody asks for it, not beforehand with the others. */
  readonly isOptional?: true;
}

function kubernetes(name: ProgramName, buildTakes: string, versionArgs = ['--version']): ProgramSpec {
  const goModule = 'k8s.io/kubernetes';
  const goPackage = `${goModule}/cmd/${name}`;
  return { name, module: 'kubernetes', goModule, goPackage, versionArgs, oldest: [1, 34], buildTakes };
}

/** Without the clients of all clouds, which would tell it what to scrape. */
function prometheus(name: ProgramName, buildTakes: string): ProgramSpec {
  const goModule = 'github.com/prometheus/prometheus';
  const goPackage = `${goModule}/cmd/${name}`;
  const tags = ['remove_all_sd'];
  return {
    name,
    module: 'prometheus',
    goModule,
    goPackage,
    tags,
    versionArgs: ['--version'],
    oldest: [3, 0],
    buildTakes,
  };
}

/** Every program, in the order in which a cold machine builds them: what takes longest first. */
export const PROGRAMS: readonly ProgramSpec[] = [
  kubernetes('kube-apiserver', 'about 4 min'),
  {
    name: 'etcd',
    module: 'etcd',
    goModule: 'go.etcd.io/etcd/server/v3',
    goPackage: 'go.etcd.io/etcd/server/v3',
    versionArgs: ['--version'],
    oldest: [3, 5],
    buildTakes: 'about 30 s',
  },
  kubernetes('kubemark', 'about 1 min'),
  kubernetes('kube-controller-manager', 'about 30 s'),
  kubernetes('kubectl', 'about 30 s', ['version', '--client']),
  prometheus('promtool', 'about 2 min'),
  prometheus('prometheus', 'about 1 min'),
  {
    name: 'helm',
    module: 'helm',
    goModule: 'helm.sh/helm/v4',
    goPackage: 'helm.sh/helm/v4/cmd/helm',
    versionArgs: ['version', '--short'],
    oldest: [3, 14],
    buildTakes: 'about 3 min',
  },
  {
    name: 'kwok',
    module: 'kwok',
    goModule: 'sigs.k8s.io/kwok',
    goPackage: 'sigs.k8s.io/kwok/cmd/kwok',
    versionArgs: ['--version'],
    oldest: [0, 7],
    buildTakes: 'about 2 min',
    isOptional: true,
  },
  {
    name: 'cluster-api',
    module: 'cluster-api',
    source: '../../test/cluster-api/main.go',
    goModule: 'sigs.k8s.io/cluster-api',
    goPackage: '.',
    versionArgs: ['--version'],
    oldest: [1, 14],
    buildTakes: 'about 5 min',
    isOptional: true,
  },
  {
    name: 'clusterctl',
    module: 'cluster-api',
    goModule: 'sigs.k8s.io/cluster-api',
    goPackage: 'sigs.k8s.io/cluster-api/cmd/clusterctl',
    versionArgs: ['version'],
    oldest: [1, 14],
    buildTakes: 'about 2 min',
    isOptional: true,
  },
  {
    name: 'terminal',
    module: 'terminal',
    source: '../../test/terminal/main.go',
    goModule: 'github.com/creack/pty',
    goPackage: '.',
    versionArgs: ['--version'],
    oldest: [1, 1],
    buildTakes: 'a few seconds',
    isOptional: true,
  },
];

/** Modules that are not beside this file, but with the tests that need them. */
const OF_TESTS: ReadonlySet<ProgramSpec['module']> = new Set(['cluster-api', 'terminal']);

/** The specification of one program. */
export function programSpec(name: ProgramName): ProgramSpec {
  const spec = PROGRAMS.find((p) => p.name === name);
  if (spec === undefined) throw new Error(`no such program: ${name}`);
  return spec;
}

/** Folder of the Go module that pins a program. */
export function moduleDirectory({ module }: Pick<ProgramSpec, 'module'>): string {
  return join(import.meta.dirname, OF_TESTS.has(module) ? `../../test/${module}` : module);
}

/** Tells what is built from all else that was: module and version, and of a program of ours what is in its files. */
export function buildName(spec: ProgramSpec): string {
  const name = `${spec.module}-${pinnedVersion(spec)}`;
  if (spec.source === undefined) return name;
  const hash = createHash('sha256');
  for (const file of [join(import.meta.dirname, spec.source), join(moduleDirectory(spec), 'go.sum')]) {
    hash.update(readFileSync(file));
  }
  return `${name}-${hash.digest('hex').slice(0, 8)}`;
}

/** The version that this project pins, without the leading v: go.mod is the only place where it is written. */
export function pinnedVersion(spec: ProgramSpec): string {
  const goMod = readFileSync(join(moduleDirectory(spec), 'go.mod'), 'utf8');
  const words = goMod.split('\n').map((line) =>
    line
      .replace(/^require\s/, '')
      .trim()
      .split(/\s+/),
  );
  // A line of replace names the module too.
  const version = words.find(([path, word = '']) => path === spec.goModule && word.startsWith('v'))?.[1]?.slice(1);
  if (version === undefined) throw new Error(`finding the version of ${spec.goModule} in go.mod`);
  return spec.module === 'prometheus' ? releaseOfPrometheus(version) : version;
}

/** Its module is not at its major version: v0.313.5 is release 3.13.5. */
function releaseOfPrometheus(version: string): string {
  const [, release = 0, patch = 0] = version.split('.').map(Number);
  return `${Math.floor(release / 100)}.${release % 100}.${patch}`;
}

/** The first version number in a program's own words: "Kubernetes v1.36.3" → 1.36.3; undefined when there is none. */
export function parseVersion(output: string): string | undefined {
  return /\bv?(\d+\.\d+(?:\.\d+)?)/.exec(output)?.[1];
}

/** Whether `version` ("1.36.3") is `oldest` or newer, by major and minor. */
export function isAtLeast(version: string, [major, minor]: readonly [number, number]): boolean {
  const [ownMajor = 0, ownMinor = 0] = version.split('.').map(Number);
  return ownMajor > major || (ownMajor === major && ownMinor >= minor);
}
