import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { describe, expect, test } from '@jest/globals';
import type { Command } from 'commander';

import { demoCommand } from '../../cmd/demo/command.ts';
import { machinistProgram } from '../../cmd/machinist/command-line.ts';
import { clusterAPIDriverCommand } from '../../cmd/cluster-api-driver/cluster-api-driver.ts';
import { ironCoreDriverCommand } from '../../cmd/ironcore-driver/ironcore-driver.ts';
import { openStackDriverCommand } from '../../cmd/openstack-driver/openstack-driver.ts';
import * as labels from '../../pkg/apis/machine/v1alpha1/labels.ts';
import { CELL_SETTING_PREFIX } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import { CELL_SETTINGS } from '../../pkg/operator/config/cells.ts';
import { OWN_CONTROLLERS } from '../../pkg/operator/config/controllers.ts';
import { controllersIn } from '../../pkg/operator/config/flag-section.ts';
import { flagsWith, IGNORED_FLAGS } from '../../pkg/operator/config/flags.ts';
import { leasesOf } from '../../pkg/operator/config/lease-groups.ts';
import * as clusterAPITags from '../../pkg/worlds/cluster-api/driver/tags.ts';
import { CLAIM as ironCoreClaim } from '../../pkg/worlds/ironcore/controllers/machine/keys.ts';
import { TAGS as ironCoreTags } from '../../pkg/worlds/ironcore/driver/tags.ts';
import * as kwokTags from '../../packages/providers/kwok/tags.ts';
import { WORLD_FLAGS } from '../../pkg/worlds/index.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');
const PAGES = globSync('docs/{concepts,operations,runbooks}/*.md', { cwd: ROOT }).toSorted();

/** Flags of programs that are not ours: kubectl, helm, docker, Node, the cluster-autoscaler and its fork. */
const OTHERS_FLAGS = [
  'all dry-run field-selector for force-conflicts from-file overwrite patch-file previous replicas server-side show-managed-fields',
  'sort-by type wait help cascade global manifest',
  'create-namespace force-conflicts reuse-values set skip-crds take-ownership target values',
  'mcm metal-kubeconfig no-build',
  'v8-pool-size',
  'enable-provisioning-requests expander kubeconfig max-node-provision-time max-node-startup-time scan-interval skip-nodes-with-',
  'scale-down-unready-enabled scale-down-unready-time unremovable-node-recheck-timeout',
].flatMap((line) => line.split(' '));
const COMMANDS: readonly Command[] = machinistProgram().commands;
const OPTIONS = [
  ...COMMANDS,
  openStackDriverCommand(),
  clusterAPIDriverCommand(),
  ironCoreDriverCommand(),
  demoCommand(),
]
  .flatMap((command) => [command, ...command.commands])
  .flatMap(({ options }) => options);
const KNOWN_FLAGS = new Set([
  ...flagsWith(WORLD_FLAGS).map(({ name }) => name),
  ...IGNORED_FLAGS,
  ...OPTIONS.map(({ long }) => long?.replace(/^--(?:no-)?/, '') ?? ''),
  ...OTHERS_FLAGS,
]);

/** Prefixes of keys that may stand in labels.ts and tags.ts; others belong to Kubernetes, or to other programs. */
const KEY = /(?<![\w./@-])(?:[a-z]+\.)*(?:sapcloud\.io|gardener\.cloud|cluster-autoscaler\.kubernetes\.io)\/[\w-]*\w/g;
/** Groups of kinds, images and mounts, and what Gardener's autoscaler and its users write. */
const OTHERS_KEYS = [
  /^machine\.sapcloud\.io\/v1alpha1$/,
  /^autoscaler\.gardener\.cloud\//,
  /^gardener\.cloud\/(?:accelerator|role)$/,
  new RegExp(`^${CELL_SETTING_PREFIX}/(?:${CELL_SETTINGS.join('|')})$`),
  /^openstack\.machine\.gardener\.cloud\/v1alpha1$/,
  /^cluster-api\.machine\.sapcloud\.io\/v1alpha1$/,
];

/** Words of several capitals that are no names of ours: other kinds, a kind that is not served, reasons of the cluster-autoscaler. */
const OTHERS_WORDS = [
  'ClusterRole ClusterRoleBinding ConfigMap DaemonSet PodDisruptionBudgets PrometheusRule ServiceMonitor CustomResourceDefinition ReplicaSet RoleBindings DevTools',
  'AWSMachineClass DevMachine NotTriggerScaleUp TriggeredScaleUp',
].flatMap((line) => line.split(' '));

/** All code that ships, as one text. */
const CODE = globSync('{cmd,pkg,packages,hack/generate/crds}/**/*.ts', { cwd: ROOT })
  .filter((file) => !file.endsWith('.test.ts') && !file.includes('/gen/'))
  .map(read)
  .join('\n');
const CAPITALS = /(?<![\w./<-])[A-Z][a-z]+(?:[A-Z]+[a-z]*)+(?![\w(])/g;
/** Names that the code has, and those of alerts. */
const WORDS = new Set(`${CODE}${read('deploy/monitoring/alerts.yaml')}`.match(/\b[A-Z]\w+/g));
/** First cells of the reference, of which other tests say that it is the code's. */
const EVENTS = new Set([...read('docs/reference/events.md').matchAll(/^\| (\w+) /gm)].map(([, reason]) => reason));

/** Code of a page: what stands between backticks, and in blocks. */
function codeOf(page: string): string[] {
  const text = read(page);
  const blocks = [...text.matchAll(/^ *```\w*\n([^]*?)^ *```$/gm)].map(([, block = '']) => block);
  const inline = [...text.replaceAll(/^( *)```[^]*?^\1```$/gm, '').matchAll(/`([^`]+)`/g)].map(([, one = '']) => one);
  return [...blocks, ...inline];
}

function flagsIn(code: string): string[] {
  return [...code.matchAll(/(?<![\w-])--([a-z][\w-]*)/g)].map(([, name = '']) => name);
}

function keysIn(code: string): string[] {
  return [...code.matchAll(KEY)].map(([key]) => key).filter((key) => !OTHERS_KEYS.some((others) => others.test(key)));
}

/** Subcommands of `machinist`, with those of `rollout` and `maintenance`. */
function commandsIn(code: string): string[] {
  return [...code.matchAll(/^ *machinist ((?:rollout |maintenance )?[a-z]+)(?= |$)/gm)].map(([, words = '']) => words);
}

describe.each(PAGES)('%s', (page) => {
  test('names flags that there are', () => {
    expect(
      codeOf(page)
        .flatMap(flagsIn)
        .filter((name) => !KNOWN_FLAGS.has(name)),
    ).toEqual([]);
  });

  test('names labels, annotations, finalizers and taints that there are', () => {
    const keys: readonly string[] = [
      ...Object.values(labels),
      ...Object.values(kwokTags),
      ...Object.values(clusterAPITags),
      ...ironCoreTags,
      ironCoreClaim,
    ];

    expect(
      codeOf(page)
        .flatMap(keysIn)
        .filter((key) => !keys.includes(key)),
    ).toEqual([]);
  });

  test('names kinds, Events, conditions, phases and codes that there are', () => {
    const names = [
      ...read(page)
        .replaceAll(/\]\([^)]*\)/g, ']')
        .matchAll(CAPITALS),
    ].map(([name]) => name);

    const unknown = names.filter((name) => !WORDS.has(name) && !WORDS.has(name.replace(/e?s$/, '')));
    expect(unknown.filter((name) => !OTHERS_WORDS.includes(name))).toEqual([]);
  });
});

test.each(PAGES)('%s names Events that there are', (page) => {
  const reasons = [...read(page).matchAll(/\bEvents? `?([A-Z]\w+)/g)].map(([, reason = '']) => reason);

  expect(reasons.filter((reason) => !EVENTS.has(reason) && !OTHERS_WORDS.includes(reason))).toEqual([]);
});

test.each(PAGES)('%s names commands of machinist that there are', (page) => {
  const names = ['run', ...COMMANDS.flatMap((one) => [one.name(), ...one.commands.map((sub) => sub.name())])];
  const subcommands = COMMANDS.flatMap((command) => command.commands.map((one) => `${command.name()} ${one.name()}`));
  const known = new Set([...names, ...subcommands, 'describe machine']);

  expect(
    codeOf(page)
      .flatMap(commandsIn)
      .filter((command) => !known.has(command)),
  ).toEqual([]);
});

test.each([...OWN_CONTROLLERS, ...WORLD_FLAGS.flatMap(controllersIn)])(
  'the page on running names controller %s in the row of its Lease',
  (controller) => {
    const [lease = ''] = leasesOf(new Set([controller]), WORLD_FLAGS);
    const row = read('docs/operations/running.md').match(new RegExp(`^\\| \`${lease}\` .*`, 'm'))?.[0] ?? '';

    expect(row.split(/[^\w.-]+/)).toContain(controller);
  },
);

test('these tests notice what there is not', () => {
  expect(flagsIn('kubectl -n a --no-such-flag=1 b---c').filter((name) => !KNOWN_FLAGS.has(name))).toEqual([
    'no-such-flag',
  ]);
  expect(keysIn('annotate node machine.sapcloud.io/no-such-key=1 machine.sapcloud.io/v1alpha1')).toEqual([
    'machine.sapcloud.io/no-such-key',
  ]);
  expect('Event NoSuchReason'.match(CAPITALS)?.filter((name) => !WORDS.has(name))).toEqual(['NoSuchReason']);
  expect(commandsIn('machinist rollout stat x\nmachinist explode')).toEqual(['rollout stat', 'explode']);
});
