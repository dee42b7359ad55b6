import { readFileSync } from 'node:fs';
import path from 'node:path';

import * as labels from '../../pkg/apis/machine/v1alpha1/labels.ts';
import { ANNOTATION_RULES } from '../../pkg/controllers/replicas/invalid-annotations.ts';
import * as kwokTags from '../../packages/providers/kwok/tags.ts';
import { textOf } from './comments.ts';
import { formatted, PROSE } from './format.ts';
import { table } from './table.ts';
import type { KeyFile } from './worlds/generated-world.ts';
import { WORLDS } from './worlds/index.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** A label, annotation, finalizer or taint, as its constant and the doc comment of that say. */
export interface Key {
  readonly key: string;
  readonly kind: 'label' | 'annotation' | 'finalizer' | 'taint';
  /** Heading in its file, such as `The original's labels`. */
  readonly heading: string;
  readonly on: string;
  readonly meaning: string;
}

/** Keys of the original and of ours, by headings. */
export const KEYS = keysOf({ file: 'pkg/apis/machine/v1alpha1/labels.ts', module: labels });

const OF_DRIVERS: readonly KeyFile[] = [
  { file: 'packages/providers/kwok/tags.ts', module: kwokTags, on: 'Nodes, by `kwok-driver`' },
  ...WORLDS.flatMap(({ tags = [] }) => tags),
  ...WORLDS.flatMap(({ keys = [] }) => keys),
];

/** docs/reference/annotations.md: every key that Machinist reads or writes, and what may stand in annotations. */
export async function annotationsReference(): Promise<string> {
  const under = (ending: string): Promise<string> => keyTable(KEYS.filter(({ heading }) => heading.endsWith(ending)));
  const text = `# Labels, annotations, finalizers and taints

Generated from \`pkg/apis/machine/v1alpha1/labels.ts\` and from the tags of drivers. Keys of the original [do not
change](compatibility.md#labels-annotations-finalizers-and-taints); the original ignores the others.

## Annotations that users and tools set

${await under('that users and tools set')}
## Annotations without effect

An invalid value is reported by condition InvalidAnnotation of the Machine, MachineSet or MachineDeployment (for a Node, of its Machine), and by one Event.
The message names each such annotation with its value. The condition is removed when all of them are corrected or removed.

${await rulesTable()}
Invalid annotations of MachineClasses and of node groups are reported elsewhere: see [autoscaler](../operations/autoscaler.md) and
[safety](../concepts/safety.md).

## Annotations that controllers record

Do not edit these annotations: decisions depend on them.

${await under('that controllers record')}
## Labels

${await under('labels')}
## Finalizers and taints

${await keyTable(KEYS.filter(({ kind }) => kind === 'finalizer' || kind === 'taint'))}
## What drivers set

${await keyTable(OF_DRIVERS.flatMap(keysOf))}`;
  return formatted('md', text, PROSE);
}

function keyTable(keys: readonly Key[]): Promise<string> {
  // Where all are of one kind the heading says which.
  const kinds = new Set(keys.map(({ kind }) => kind)).size > 1;
  return table(
    ['key', ...(kinds ? ['kind'] : []), 'origin', 'objects', 'meaning'],
    keys.map(({ key, kind, heading, on, meaning }) => {
      const whose = heading.startsWith('The original') ? 'the original' : 'Machinist';
      return [`\`${key}\``, ...(kinds ? [kind] : []), whose, on, meaning];
    }),
  );
}

function rulesTable(): Promise<string> {
  const rows = Object.entries(ANNOTATION_RULES).flatMap(([kind, rules]) => rules.map((rule) => ({ kind, rule })));
  const alike = Map.groupBy(rows, ({ rule: { key, allowed, until } }) => JSON.stringify([key, allowed, until]));
  return table(
    ['annotation', 'on', 'allowed values', 'until it is corrected'],
    [...alike.values()].flatMap((some) => {
      const [first] = some;
      if (first === undefined) return [];
      const { key, allowed, until } = first.rule;
      return [[`\`${key}\``, some.map(({ kind }) => kind).join(', '), allowed, until]];
    }),
  );
}

function keysOf({ file, module, on: always, only }: KeyFile): readonly Key[] {
  const sections = `\n${readFileSync(path.join(ROOT, file), 'utf8')}`.split(/\n\/\/ (?=.+\n\n)/);
  return sections.flatMap((section, at) => {
    const heading = at === 0 ? '' : (section.split('\n', 1)[0] ?? '');
    const declared = [...section.matchAll(/(?:\/\*\*((?:(?!\*\/)[^])*)\*\/\n)?export const (\w+)/g)];
    return declared.flatMap(([, doc = '', name = '']) => {
      const kind = kindOf(name);
      const key = module[name];
      const isMeant = heading !== 'Of others' && (only?.includes(name) ?? true);
      if (!isMeant || kind === undefined || typeof key !== 'string') return [];
      return [{ key, kind, heading, ...meaningOf(file, name, doc, always) }];
    });
  });
}

function kindOf(name: string): Key['kind'] | undefined {
  const [suffix = ''] = /[A-Z]+$/.exec(name) ?? [];
  if (suffix === 'LABEL' || suffix === 'FINALIZER' || suffix === 'TAINT') return suffix.toLowerCase() as Key['kind'];
  return ['ANNOTATION', 'PREFIX', 'KEY', 'HOOK'].includes(suffix) ? 'annotation' : undefined;
}

/** `On Machines: what it means`, with an upper case letter; a comment that does not begin so is no use to a reader of the page. */
function meaningOf(file: string, name: string, doc: string, always: string | undefined): Pick<Key, 'on' | 'meaning'> {
  const text = textOf(doc);
  const [, on = always, meaning = text] = (always === undefined ? /^On ([^:]+): (.+)$/.exec(text) : null) ?? [];
  if (on === undefined)
    throw new Error(`${file}: the comment of ${name} does not begin with the objects that it is on`);
  return { on, meaning: meaning.charAt(0).toUpperCase() + meaning.slice(1) };
}
