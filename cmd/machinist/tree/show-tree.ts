import { GROUP } from '../../../pkg/apis/machine/v1alpha1/group.ts';
import { machineDeployments, machines, machineSets } from '../../../pkg/kube/client/resource.ts';
import { treeOf, type TreeNode, type TreeObjects } from '../../../pkg/fleet/tree.ts';
import { CommandCluster } from '../command-cluster.ts';
import { CommandError } from '../command-error.ts';
import { didYouMean } from '../did-you-mean.ts';
import { formatted } from '../output.ts';
import { parseReferences } from '../references.ts';
import { noticesOf, runForExitCode, type Terminal } from '../terminal.ts';
import { TREE_KINDS, type TreeOptions } from './command.ts';
import { renderTree } from './render.ts';

/** How often ages are brought up to date. */
const REDRAWN_EVERY_MS = 10_000;
/** Changes that come together are shown together. */
const SETTLED_MS = 200;

/** Prints the tree, and with `--watch` each change of it. Resolves with the exit code. */
export async function showTree(words: readonly string[], options: TreeOptions, terminal: Terminal): Promise<number> {
  return await runForExitCode(terminal, async () => {
    const { named } = parseReferences(words, TREE_KINDS, { mayOmitType: true });
    const names = named.length === 0 ? undefined : new Set(named.map(({ name }) => name));
    if (names !== undefined && (options.selector !== undefined || options.allNamespaces === true)) {
      throw new CommandError('names cannot be used with --selector or --all-namespaces');
    }
    if (options.watch && options.output !== 'text') throw new CommandError('--watch shows text only');
    await using cluster = await CommandCluster.open({
      ...options,
      env: terminal.env,
      err: noticesOf(terminal),
      command: 'tree',
    });
    if (options.watch) return await follow(cluster, names, options, terminal);

    const roots = await read(cluster, names, options);
    if (options.output === 'text') {
      for (const line of draw(roots, cluster.now(), options, terminal)) terminal.out(line);
    } else if (options.output === 'name') {
      for (const line of roots.flatMap(namesIn)) terminal.out(line);
    } else {
      terminal.out(await formatted(roots, options.output));
    }
  });
}

async function read(
  cluster: CommandCluster,
  names: ReadonlySet<string> | undefined,
  { allNamespaces = false, selector }: TreeOptions,
): Promise<readonly TreeNode[]> {
  const where = allNamespaces ? {} : { namespace: cluster.namespace };
  const [deployments, sets, found] = await Promise.all([
    cluster.reader.list(machineDeployments, {
      ...where,
      ...(selector === undefined ? {} : { labelSelector: selector }),
    }),
    cluster.reader.list(machineSets, where),
    cluster.reader.list(machines, where),
  ]);
  const objects = { deployments: deployments.items, sets: sets.items, machines: found.items };
  const roots = treeOf(objects, cluster.now(), chosen(objects, names, selector));
  if (roots.length > 0) return roots;
  throw new CommandError(`no resources found${allNamespaces ? '' : ` in ${cluster.namespace} namespace`}`);
}

/** The names of the MachineDeployments that are shown; undefined for everything. Throws CommandError for one that does not exist. */
function chosen(
  { deployments }: TreeObjects,
  names: ReadonlySet<string> | undefined,
  selector: string | undefined,
): ReadonlySet<string> | undefined {
  const present = new Set(deployments.map(({ metadata }) => metadata.name));
  const missing = [...(names ?? [])].filter((name) => !present.has(name));
  if (missing.length > 0) {
    const hint = didYouMean(missing[0] ?? '', present);
    throw new CommandError(`machinedeployments.${GROUP} "${missing.join('", "')}" not found${hint}`);
  }
  return names ?? (selector === undefined ? undefined : present);
}

function draw(
  roots: readonly TreeNode[],
  nowMs: number,
  { allNamespaces = false }: TreeOptions,
  { columns, hasColour = false }: Terminal,
): readonly string[] {
  return renderTree(roots, nowMs, { columns, hasColour, allNamespaces });
}

function namesIn({ kind, name, children }: TreeNode): string[] {
  return [`${kind.toLowerCase()}.${GROUP}/${name}`, ...children.flatMap(namesIn)];
}

/** Draws the tree anew on a terminal; elsewhere prints the lines that have changed. Ends with the process. */
async function follow(
  cluster: CommandCluster,
  names: ReadonlySet<string> | undefined,
  options: TreeOptions,
  terminal: Terminal,
): Promise<void> {
  const { allNamespaces = false, selector } = options;
  let before = new Set<string>();
  const show = (objects: TreeObjects): void => {
    const nowMs = cluster.now();
    const roots = treeOf(objects, nowMs, names ?? chosen(objects, undefined, selector));
    const lines = draw(roots, nowMs, options, terminal);
    if (terminal.rows !== undefined) {
      terminal.clear?.();
      return terminal.out(fitting(lines, terminal.rows).join('\n'));
    }
    // Ages and widths of columns alone are no change.
    const keys = lines.map((line) => line.replaceAll(/\b\d+[smhdy](?:\d+[smhd])?\b/g, '').replaceAll(/ +/g, ' '));
    for (const [i, line] of lines.entries()) if (!before.has(keys[i] ?? '')) terminal.out(line);
    before = new Set(keys);
  };
  // What cannot be read at all is said at once; a later outage is waited for.
  await read(cluster, names, options);
  const where = allNamespaces ? {} : { namespace: cluster.namespace };
  const deployments = cluster.informer(machineDeployments, {
    ...where,
    ...(selector === undefined ? {} : { labelSelector: selector }),
  });
  const sets = cluster.informer(machineSets, where);
  const found = cluster.informer(machines, where);
  const informers = [deployments, sets, found];
  const never = new AbortController().signal;
  const running = informers.map((informer) => informer.run(never));
  await Promise.all(informers.map((informer) => informer.waitForSync(never)));

  let timer: NodeJS.Timeout | undefined;
  const redraw = (): void => {
    timer = undefined;
    show({ deployments: deployments.list(), sets: sets.list(), machines: found.list() });
  };
  for (const informer of informers) informer.onChange(() => void (timer ??= setTimeout(redraw, SETTLED_MS)));
  setInterval(redraw, REDRAWN_EVERY_MS);
  await Promise.all(running);
}

function fitting(lines: readonly string[], rows: number): readonly string[] {
  const room = Math.max(rows - 1, 2);
  return lines.length <= room ? lines : [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more lines`];
}
