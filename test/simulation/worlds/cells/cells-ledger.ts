import { NOT_MANAGED_ANNOTATION } from '../../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../../../pkg/apis/wire.ts';
import { canonicalIDOf } from '../../../../packages/providers/sim/vm.ts';
import type { StoredObject } from '../../api-server/stored-object.ts';
import { CELL_LABEL, type MachinesWorld } from '../../world/machines-world.ts';
import type { Judge } from '../../world/population.ts';
import type { ProcessRequest } from '../../world/processes.ts';
import { askerAt, targetAt } from '../../world/target-address.ts';
import type { Cell } from './cell.ts';

/** So long after its label was taken off, nobody changes anything of a cell any more: a watch may be silent, a call under way, a process paused. */
const RELEASED_MS = 10 * 60_000;

/** Watches over cells together: what each must never do, and what they must not do to one another. */
export class CellsLedger implements Judge {
  #troubled: Cell | undefined;
  #troubledSinceMs = 0;
  readonly #world: MachinesWorld;
  readonly #cells: readonly Cell[];
  readonly #own: string[] = [];
  /** Since when a cell is not selected. */
  readonly #unselectedMs = new Map<Cell, number>();
  /** Which cell has changed something in a target cluster last. */
  readonly #writers = new Map<string, Cell>();
  /** Cells of which something was said that is said once. */
  readonly #told = new Set<string>();

  constructor(world: MachinesWorld, cells: readonly Cell[]) {
    this.#world = world;
    this.#cells = cells;
    const { objects } = world.servers.control;
    objects.onChange(({ plural }) => {
      if (plural === 'namespaces' || plural === 'rolebindings') this.#noteSelection();
    });
    objects.onRestore(() => {
      this.#noteSelection();
      // Who had it may be forgotten.
      this.#writers.clear();
    });
    this.#noteSelection();
    if (world.options.hasTarget) {
      world.servers.target.objects.onChange(({ plural }, { type, object, previous }) => {
        if (plural !== 'nodes') return;
        const cell = cells.find((one) => one.world.isOwn(object));
        if (cell !== undefined) this.#lookAtMarks(cell, object, previous);
        else if (type === 'DELETED') this.find(`Node ${object.metadata.name}, which is nobody's, was deleted`);
      });
    }
    world.processes.onRequest((request) => this.#lookAtRequest(request));
  }

  /** The one cell that has trouble at the moment; undefined: any may have it. */
  get troubled(): Cell | undefined {
    return this.#troubled;
  }

  set troubled(cell: Cell | undefined) {
    this.#troubled = cell;
    this.#troubledSinceMs = this.#world.time.epochMs;
  }

  get findings(): readonly string[] {
    return [...this.#own, ...this.#cells.flatMap(({ pool }) => pool.ledger.findings)];
  }

  get vmsMade(): number {
    return this.#cells.reduce((sum, { pool }) => sum + pool.ledger.vmsMade, 0);
  }

  get isHopeless(): boolean {
    return this.#cells.some(({ pool }) => pool.ledger.isHopeless);
  }

  find(what: string): void {
    this.#world.trace.add(`finding ${what}`);
    this.#own.push(`${(this.#world.time.elapsedMs / 1_000).toFixed(0)} s: ${what}`);
  }

  look(): void {
    for (const { pool } of this.#cells) pool.ledger.look();
    if (this.troubled !== undefined)
      for (const cell of this.#cells) if (cell !== this.troubled) this.#lookAtUntroubled(cell);
  }

  /** Those of these cells that are not managed by exactly one process. */
  notManagedOnce(cells: readonly Cell[]): readonly string[] {
    const { running } = this.#world.processes;
    return cells.flatMap(({ namespace }) => {
      const managing = running.filter((process) => process.cells?.running.has(namespace) === true);
      return managing.length === 1 ? [] : [`cell ${namespace} is managed by ${managing.length} processes`];
    });
  }

  /** What is wrong with one target concerns no other cell. */
  #lookAtUntroubled({ namespace }: Cell): void {
    for (const { identity, cells } of this.#world.processes.running) {
      const outages = cells?.running.get(namespace)?.outages.current() ?? [];
      // An outage that was there before has not ended yet.
      const outage = outages.find(({ sinceMs }) => sinceMs > this.#troubledSinceMs);
      if (outage !== undefined) this.#findOnce(`cell ${namespace} has an outage of ${outage.cluster} in ${identity}`);
    }
  }

  #findOnce(what: string): void {
    if (this.#told.has(what)) return;
    this.#told.add(what);
    this.find(`although all trouble is with ${this.troubled?.namespace}: ${what}`);
  }

  #noteSelection(): void {
    for (const cell of this.#cells) {
      if (cell.isSelected) this.#unselectedMs.delete(cell);
      else if (!this.#unselectedMs.has(cell)) this.#unselectedMs.set(cell, this.#world.time.elapsedMs);
    }
  }

  #lookAtRequest(request: ProcessRequest): void {
    const cell = this.#cells.find(({ world }) => world.concerns(request));
    if (cell === undefined) return;
    const { identity, to, method, path } = request;
    const what = `${identity} asked for a change: ${method} ${to} ${path}`;
    const unselectedMs = this.#unselectedMs.get(cell);
    // Who may not read namespaces learns of nothing.
    const mayLearn = this.#world.weather.rates.refused403 === 0;
    if (unselectedMs !== undefined && mayLearn && this.#world.time.elapsedMs - unselectedMs > RELEASED_MS) {
      this.find(`${cell.namespace} is not selected, and ${what}`);
    }
    this.#noteWriter(targetAt(to), askerAt(to), what);
    if (to === 'target') this.#lookAtNodeWrite(cell, request, what);
  }

  /** A Node says that it is no other cell's, and not that it has no Machine while it has one that knows it. */
  #lookAtMarks({ world, namespace }: Cell, node: StoredObject, before: StoredObject | undefined): void {
    const { name, labels = {}, annotations = {} } = node.metadata;
    const told = labels[CELL_LABEL];
    if (told !== undefined && told !== namespace && told !== before?.metadata.labels?.[CELL_LABEL]) {
      this.find(`Node ${name}, whose VM is of ${namespace}, has become that of ${told}`);
    }
    const isMarked = annotations[NOT_MANAGED_ANNOTATION] !== undefined;
    if (!isMarked || before?.metadata.annotations?.[NOT_MANAGED_ANNOTATION] !== undefined) return;
    const id = canonicalIDOf((node as object as Node).spec?.providerID ?? '');
    const machine = world.machines.find(({ spec }) => canonicalIDOf(spec?.providerID ?? '-') === id);
    if (machine === undefined || machine.metadata.labels?.['node'] !== name) return;
    this.find(`Node ${name} was marked as one without Machine, and ${namespace} has that`);
  }

  /** Where all cells have one target: a process that does not manage the Machine of a Node does nothing to that. */
  #lookAtNodeWrite(cell: Cell, { identity, path }: ProcessRequest, what: string): void {
    const [, name = ''] = /^\/api\/v1\/nodes\/([^/?]+)/.exec(path) ?? [];
    const node = cell.world.nodes.find(({ metadata }) => metadata.name === name);
    const id = canonicalIDOf(node?.spec?.providerID ?? '');
    const machine = cell.world.machines.find(({ spec }) => canonicalIDOf(spec?.providerID ?? '-') === id);
    const process = this.#world.processes.running.find((one) => one.identity === identity);
    if (node === undefined || machine === undefined || process?.cells?.running.has(cell.namespace) !== false) return;
    if (!cell.isSelected) return;
    this.find(`${identity} does not manage ${cell.namespace}, whose Node it is, and ${what}`);
  }

  /** A target cluster is that of one cell. */
  #noteWriter(target: string | undefined, asker: string | undefined, what: string): void {
    const writer = this.#cells.find(({ namespace }) => namespace === asker);
    if (target === undefined || writer === undefined) return;
    const before = this.#writers.get(target);
    this.#writers.set(target, writer);
    if (before === undefined || before === writer || !isNeeded(before, target)) return;
    this.find(`the target cluster of ${target} is that of ${before.namespace}, and for ${asker} ${what}`);
  }
}

/** Whether a target cluster is still that of a cell. */
function isNeeded(cell: Cell, target: string): boolean {
  return cell.isSelected ? cell.target === target : cell.world.machines.length > 0;
}
