import PQueue from 'p-queue';

import type { ObjectRef } from '../../../pkg/kube/client/client.ts';
import { ApiError, isNotFound } from '../../../pkg/kube/client/errors.ts';
import { CommandCluster } from '../command-cluster.ts';
import { CommandError, failureText } from '../command-error.ts';
import { type KindName, MACHINE, NODE, objectName } from '../kinds.ts';
import { machinesOfNode } from '../machines-of-node.ts';
import { formatted } from '../output.ts';
import { parseReferences } from '../references.ts';
import { noticesOf, runForExitCode, type Terminal } from '../terminal.ts';
import type { DescribeOptions } from './command.ts';
import { DESCRIBED_KINDS, describedKind, type ReadWork } from './described-kinds.ts';
import { describeGone } from './gone.ts';
import { readWork } from './read-work.ts';
import type { DescribedKind } from '../../../pkg/fleet/describe/described-kind.ts';
import { printDescription, type PrintedDescription } from './print-description.ts';

/** How many objects are read at once. */
const AT_ONCE = 10;

/** An object that is to be described. */
interface Meant {
  readonly kind: KindName;
  readonly ref: ObjectRef;
}

/**
 * Prints what is known of objects. Resolves with the exit code: 1 when one of them could not be read, which was then said in one line on
 * standard error, in kubectl's words.
 */
export async function describeObjects(
  words: readonly string[],
  options: DescribeOptions,
  terminal: Terminal,
): Promise<number> {
  let failures = 0;
  const code = await runForExitCode(terminal, async () => {
    const { named, allOf } = parseReferences(words, DESCRIBED_KINDS);
    await using cluster = await CommandCluster.open({
      ...options,
      env: terminal.env,
      err: noticesOf(terminal),
      command: 'describe',
    });
    /** What is wrong with one object is no reason to show nothing of the others. */
    const reported = (err: unknown): undefined => {
      if (!(err instanceof CommandError || (err instanceof ApiError && err.code !== 0))) throw err;
      failures++;
      terminal.err(failureText(err) ?? '');
    };
    const { namespace } = cluster;
    const meant: Meant[] = [];
    for (const { kind, name } of named) {
      if (kind !== NODE) meant.push({ kind, ref: { namespace, name } });
      else meant.push(...((await machinesOn(cluster, name).catch(reported)) ?? []));
    }
    const chosen = allOf === undefined ? meant : await select(cluster, allOf, options);
    let read: ReturnType<ReadWork> | undefined;
    const isPrinted = options.output !== 'name';
    const work: ReadWork = () => (read ??= isPrinted ? readWork(cluster, options) : Promise.resolve([]));
    const loaded = new Map<KindName, Promise<DescribedKind>>();
    const queue = new PQueue({ concurrency: AT_ONCE });
    const results = await Promise.allSettled(
      chosen.map(({ kind, ref }) =>
        queue.add(async () => {
          const described = loaded.get(kind) ?? describedKind(kind, work);
          loaded.set(kind, described);
          return await printed(await described, ref, cluster);
        }),
      ),
    );
    const found: PrintedDescription[] = [];
    for (const [i, result] of results.entries()) {
      const one = chosen[i];
      if (result.status === 'rejected') reported(result.reason);
      else if (one !== undefined) {
        found.push(result.value);
        if (!isPrinted) terminal.out(objectName(one.kind, one.ref.name));
      }
    }
    await show(found, options, terminal);
  });
  return failures > 0 ? 1 : code;
}

async function show(
  found: readonly PrintedDescription[],
  { output }: DescribeOptions,
  { out }: Terminal,
): Promise<void> {
  if (output === 'name' || found.length === 0) return;
  if (output === 'text') return out(found.map(({ text }) => text).join('\n\n\n'));
  const [first, ...others] = found.map(({ description }) => description);
  out(await formatted(others.length === 0 ? first : [first, ...others], output));
}

/** What is described of a Node. Throws CommandError when no Machine has it. */
async function machinesOn(cluster: CommandCluster, node: string): Promise<readonly Meant[]> {
  const { namespace } = cluster;
  const names = await machinesOfNode(cluster, node);
  if (names.length === 0) throw new CommandError(`no machine in ${namespace} namespace has Node "${node}"`);
  return names.map((name) => ({ kind: MACHINE, ref: { namespace, name } }));
}

/** All objects of a kind that the options select; of all Nodes their Machines. Throws CommandError when there is none. */
async function select(
  cluster: CommandCluster,
  named: KindName,
  { allNamespaces = false, selector }: DescribeOptions,
): Promise<readonly Meant[]> {
  const kind = named === NODE ? MACHINE : named;
  const { items } = await cluster.reader.list(kind.resource, {
    ...(allNamespaces ? {} : { namespace: cluster.namespace }),
    ...(selector === undefined ? {} : { labelSelector: selector }),
    metadataOnly: true,
  });
  if (items.length === 0) {
    const where = allNamespaces ? '' : ` in ${cluster.namespace} namespace`;
    throw new CommandError(`no resources found${where}`);
  }
  return items.map(({ metadata: { namespace = '', name } }) => ({ kind, ref: { namespace, name } }));
}

/** What is known of an object, or of one that existed. Throws ApiError. */
async function printed(kind: DescribedKind, ref: ObjectRef, cluster: CommandCluster): Promise<PrintedDescription> {
  try {
    return await printDescription(kind, ref, cluster);
  } catch (err) {
    if (!isNotFound(err)) throw err;
    const gone = await describeGone(kind.resource, ref, cluster);
    if (gone === undefined) throw await cluster.withSuggestion(err, kind.resource, ref.name);
    return gone;
  }
}
