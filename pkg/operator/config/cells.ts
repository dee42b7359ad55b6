import { InvalidSelectorError, type LabelMatcher, labelMatcher } from '../../apis/label-selector.ts';
import { CELL_SETTING_PREFIX } from '../../apis/machine/v1alpha1/labels.ts';
import { parseSelector } from '../../apis/selector-text.ts';
import { CLIENT_NAME } from './autoscaler.ts';
import type { KubeObject } from '../../apis/meta.ts';
import type { Config } from './config.ts';
import { FlagError } from './flag-error.ts';
import { OWN_FLAGS } from './flags.ts';
import type { ValueReader } from './value-reader.ts';

/** Which namespaces a process looks after, each with a target cluster of its own, or all with the same one. */
export interface CellsConfig {
  /** Label selector of the namespaces; '' if they are named. */
  readonly selector: string;
  /** Names of the namespaces; undefined: the selector says which. */
  readonly names: readonly string[] | undefined;
  /** Whether a namespace is one of them. */
  readonly isSelected: (namespace: KubeObject) => boolean;
  /** Name of the Secret in each with the kubeconfig of its target cluster; '': cells have none of their own. */
  readonly kubeconfigSecret: string;
  /** Name of the Secret in each with the token for it; '': the kubeconfig has its credentials. */
  readonly tokenSecret: string;
  /** The target cluster of the flags is that of all cells. */
  readonly hasOneTarget: boolean;
  /** The most that is taken of a target cluster: in an answer, and of a kind in a cache. */
  readonly maxTargetBytes: number;
  /** Leases among which the namespaces are divided. */
  readonly shards: number;
  /** Whether an annotation of a namespace is a setting that its cell has from its beginning. */
  readonly isSetting: (annotation: string) => boolean;
  /** Names of autoscalers that may scale a namespace with these annotations, at this moment. */
  readonly clientNamesIn: (annotations: Readonly<Record<string, string>>) => readonly string[];
  /** What the flags say for one namespace, whose annotations say otherwise. Throws CellSettingsError. */
  readonly of: (namespace: string, annotations: Readonly<Record<string, string>>) => Config;
}

/** Annotations of a namespace that are no settings. The message names the annotation and the remedy. */
export class CellSettingsError extends Error {
  override readonly name = 'CellSettingsError';
}

/** Of annotations that take the place of a flag. */
const PREFIX = `${CELL_SETTING_PREFIX}/`;

/** Of RFC 1123. */
const NAMESPACE_NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

const MIB = 1024 * 1024;

const GROUPS: ReadonlySet<string> = new Set(['Machines', 'Safety']);

/** Annotation of a namespace with the names of its autoscalers. */
export const CELL_CLIENT_NAME = `${PREFIX}${CLIENT_NAME}`;
/** The flags of autoscalers that are one namespace's. */
const OF_AUTOSCALERS: ReadonlySet<string> = new Set([CLIENT_NAME, 'autoscaler-gpu-label', 'autoscaler-gpu-types']);

/** The flags that a namespace may set for itself. */
export const CELL_SETTINGS: readonly string[] = OWN_FLAGS.filter(
  ({ name, group, programs, unused }) =>
    (GROUPS.has(group) || OF_AUTOSCALERS.has(name)) && programs.includes('machinist run') && unused !== true,
).map(({ name }) => name);

/** The flag of the process wins; a cell may only add its own. */
const DRY_RUN = 'machine-safety-orphan-vms-dry-run';

/** Where each cell has its kubeconfig. */
const OF_CELLS = ['cell-kubeconfig-secret', 'cell-token-secret'] as const;

/** Reads the flags of cells; `read` makes the settings of one with these values in place of those on the command line. Throws FlagError. */
export function cellsFrom(
  { text, number, bool, list }: ValueReader,
  reread: (instead: ReadonlyMap<string, readonly string[]>) => Config,
): CellsConfig | undefined {
  const selector = text('cells');
  const named = list('cell-namespaces');
  if (selector !== '' && named.length > 0) {
    throw new FlagError(
      '--cells and --cell-namespaces exclude each other: select the namespaces by labels, or name them',
    );
  }
  if (selector === '' && named.length === 0) {
    const idle = OF_CELLS.find((name) => text(name) !== '');
    if (idle !== undefined) {
      throw new FlagError(
        `--${idle} has no effect without --cells; set --cells, or --cell-namespaces, or remove --${idle}`,
      );
    }
    return undefined;
  }
  const names = selector === '' ? namesFrom(named) : undefined;
  const matches = selector === '' ? undefined : matcherOf(selector);
  // Where roles are in each namespace, those of the Leases are not in any of theirs.
  const leaseNamespace = names === undefined ? '' : text('leader-elect-resource-namespace') || text('namespace');
  return {
    selector,
    names,
    isSelected: ({ metadata }) => matches?.(metadata.labels) ?? names?.includes(metadata.name) === true,
    kubeconfigSecret: text('cell-kubeconfig-secret'),
    tokenSecret: text('cell-token-secret'),
    hasOneTarget: hasOneTarget({ text, list }),
    maxTargetBytes: number('cell-max-target-mib') * MIB,
    shards: number('cell-shards'),
    isSetting: (annotation) => annotation.startsWith(PREFIX) && annotation !== CELL_CLIENT_NAME,
    clientNamesIn: (annotations) => namesIn(annotations[CELL_CLIENT_NAME] ?? ''),
    of(namespace, annotations) {
      const settings = settingsIn(annotations);
      try {
        const own = reread(
          new Map<string, readonly string[]>([
            // What the flags say of all would let one autoscaler scale every namespace.
            [CLIENT_NAME, ['']],
            ...Object.entries(settings).map(([name, value]) => [name, [value]] as const),
            ['namespace', [namespace]],
            ['leader-elect-resource-namespace', [leaseNamespace]],
            ['cells', ['']],
            ['cell-namespaces', ['']],
            ...OF_CELLS.map((name) => [name, ['']] as const),
          ]),
        );
        // A dry run of the process, as after a restore, is one of all: an annotation may be left of an earlier one of this cell.
        const orphanVMsDryRun = own.safety.orphanVMsDryRun || bool(DRY_RUN);
        return Object.freeze({ ...own, safety: { ...own.safety, orphanVMsDryRun } });
      } catch (err) {
        if (!(err instanceof FlagError)) throw err;
        // Each flag in a message is one that may be set here, too.
        const what = err.message.replaceAll(/--(?=[a-z])/g, PREFIX);
        throw new CellSettingsError(`annotation ${what}`);
      }
    },
  };
}

/** Whether the flags say which namespaces are cells. */
export function namesCells({ text, list }: Pick<ValueReader, 'text' | 'list'>): boolean {
  return text('cells') !== '' || list('cell-namespaces').length > 0;
}

/**
 * Whether the target cluster of the flags is that of all cells. A kubeconfig beside no other one has always been that of the control cluster.
 * Throws FlagError.
 */
export function hasOneTarget({ text, list }: Pick<ValueReader, 'text' | 'list'>): boolean {
  const target = text('target-kubeconfig');
  const isNamed = list('cell-namespaces').length > 0;
  if (!namesCells({ text, list })) return false;
  if (text('control-kubeconfig') === '' || ['', 'none'].includes(target)) return false;
  if (isNamed) {
    throw new FlagError(
      `--target-kubeconfig=${target} is not supported with --cell-namespaces: whose a Node of a common target cluster is can only be known where the Machines of all namespaces are read; select the namespaces with --cells`,
    );
  }
  if (text('cell-kubeconfig-secret') !== '') {
    throw new FlagError(
      `--target-kubeconfig=${target} and --cell-kubeconfig-secret exclude each other: all cells share that target cluster, or each has its own`,
    );
  }
  return true;
}

/** Each once. Throws FlagError. */
function namesFrom(names: readonly string[]): readonly string[] {
  for (const name of names) requireNamespace('cell-namespaces', name);
  return [...new Set(names)];
}

/** Throws FlagError. */
export function requireNamespace(flag: string, name: string): void {
  if (!NAMESPACE_NAME.test(name))
    throw new FlagError(`--${flag}: ${JSON.stringify(name)} is not the name of a namespace`);
}

/** Throws FlagError. */
function matcherOf(selector: string): LabelMatcher {
  try {
    return labelMatcher(parseSelector(selector));
  } catch (err) {
    if (!(err instanceof InvalidSelectorError)) throw err;
    throw new FlagError(`--cells: ${err.message}`);
  }
}

/** As flags with several values are read. */
function namesIn(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim());
  return [...new Set(names.filter((name) => name !== ''))];
}

/** Throws CellSettingsError for what no flag is named. */
function settingsIn(annotations: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const ours = Object.entries(annotations).filter(([key]) => key.startsWith(PREFIX));
  const unknown = ours.find(([key]) => !CELL_SETTINGS.includes(key.slice(PREFIX.length)));
  if (unknown !== undefined) {
    throw new CellSettingsError(
      `annotation ${unknown[0]} is not a setting: remove it, or use ${PREFIX} with one of ${CELL_SETTINGS.join(', ')}`,
    );
  }
  return Object.fromEntries(ours.map(([key, value]) => [key.slice(PREFIX.length), value]));
}
