import { isObject } from '../../../apis/members.ts';
import { parseYaml, YamlError } from '../../../apis/yaml.ts';
import { invalid } from '../../../drivers/spec-fields.ts';

/** A Butane config: what people write of an Ignition config. */
export type Butane = Readonly<Record<string, unknown>>;

const PATH = 'providerSpec.ignition';

/** Version of the Ignition config for each variant and version of Butane. */
const IGNITION_VERSIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  fcos: { '1.0.0': '3.0.0', '1.1.0': '3.1.0', '1.2.0': '3.2.0', '1.3.0': '3.2.0', '1.4.0': '3.3.0', '1.5.0': '3.4.0' },
  flatcar: { '1.0.0': '3.3.0', '1.1.0': '3.4.0' },
};

/** Short forms of Butane that stand for more than one member of Ignition, or for files of the host that translates. */
const SHORT_FORMS = new Set([
  'boot_device',
  'contents_local',
  'local',
  'ssh_authorized_keys_local',
  'trees',
  'with_mount_unit',
  'grub',
]);

/** Members whose names are not those of Butane in camel case. */
const NAMES: Readonly<Record<string, string>> = { size_mib: 'sizeMiB', start_mib: 'startMiB' };

/** Reads a Butane config. Throws InvalidArgument that names where it is wrong. */
export function parseButane(content: string): Butane {
  try {
    const butane = parseYaml(content);
    if (isObject(butane)) return butane;
  } catch (err) {
    if (err instanceof YamlError) throw invalid(`${PATH}: ${err.message}`);
    throw err;
  }
  throw invalid(`${PATH}: must be a Butane config, in YAML or JSON`);
}

/**
 * Joins two configs. Where both have a member, the first one's stays and lists follow each other; with `override` the second one's
 * takes its place. Only an empty member never does.
 */
export function joinButane(base: Butane, more: Butane, override: boolean): Butane {
  const joined: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(more)) joined[name] = join(joined[name], value, override);
  return joined;
}

function join(one: unknown, other: unknown, override: boolean): unknown {
  if (isEmpty(one)) return other;
  if (isEmpty(other)) return one;
  if (isObject(one) && isObject(other)) return joinButane(one, other, override);
  if (override) return other;
  return Array.isArray(one) && Array.isArray(other) ? [...(one as unknown[]), ...(other as unknown[])] : one;
}

/** What a program that joins configs takes for no value. */
function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === false || value === 0) return true;
  return Array.isArray(value) && value.length === 0;
}

/** Replaces `{{ .Hostname }}` and `{{ .UserData }}` in all texts. Throws InvalidArgument for any other template. */
export function fillIn(butane: Butane, values: Readonly<Record<'Hostname' | 'UserData', string>>): Butane {
  return mapTexts(butane, (text) =>
    text.replaceAll(/\{\{-?(?<expression>.*?)-?\}\}/gs, (_all, ...groups) => {
      const { expression = '' } = groups.at(-1) as { expression?: string };
      return valueOf(expression, values);
    }),
  ) as Butane; // an object stays one
}

/** The earlier provider's texts were YAML when they were filled in; here they are values, which need no indentation. */
function valueOf(expression: string, values: Readonly<Record<'Hostname' | 'UserData', string>>): string {
  const [name = '', ...filters] = expression.split('|').map((part) => part.trim());
  const value = name === '.Hostname' || name === '.UserData' ? values[name.slice(1) as keyof typeof values] : undefined;
  if (value === undefined || !filters.every((filter) => filter === 'trim' || /^indent \d+$/.test(filter))) {
    throw invalid(`${PATH}: {{${expression}}} is not supported, use {{ .Hostname }} or {{ .UserData }}`);
  }
  return filters.includes('trim') ? value.trim() : value;
}

function mapTexts(value: unknown, map: (text: string) => string): unknown {
  if (typeof value === 'string') return map(value);
  if (Array.isArray(value)) return value.map((one) => mapTexts(one, map));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, mapTexts(one, map)]));
}

/**
 * The Ignition config that a Butane config stands for ({@link https://coreos.github.io/butane/specs/}). Throws InvalidArgument for a
 * variant, a version or a short form that is not known here.
 */
export function ignitionOf({ variant, version, ignition, ...config }: Butane): object {
  const known = IGNITION_VERSIONS[String(variant)]?.[String(version)];
  if (known === undefined) {
    const all = Object.entries(IGNITION_VERSIONS).map(([name, of]) => `${name} ${Object.keys(of).join(', ')}`);
    throw invalid(
      `${PATH}: variant ${String(variant)} of version ${String(version)} is not supported, use ${all.join(' or ')}`,
    );
  }
  const more = ignition === undefined ? {} : (translated(ignition, 'ignition') as object);
  return { ...(translated(config, '') as object), ignition: { ...more, version: known } };
}

function translated(value: unknown, path: string): unknown {
  if (Array.isArray(value)) return value.map((one, i) => translated(one, `${path}[${i}]`));
  if (!isObject(value)) return value;
  const members: [string, unknown][] = [];
  for (const [name, member] of Object.entries(value)) {
    const at = path === '' ? name : `${path}.${name}`;
    if (SHORT_FORMS.has(name)) throw invalid(`${PATH}: ${at} is not supported, write it out`);
    if (name !== 'inline') members.push([nameOf(name), translated(member, at)]);
    else if (value['source'] !== undefined) throw invalid(`${PATH}: ${at}: source is set too, remove one of them`);
    else members.push(['source', dataURL(member, at)]);
  }
  return Object.fromEntries(members);
}

function nameOf(name: string): string {
  return NAMES[name] ?? name.replaceAll(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase());
}

/** RFC 2397, the shorter one of both forms. */
function dataURL(content: unknown, at: string): string {
  if (typeof content !== 'string') throw invalid(`${PATH}: ${at}: must be a string`);
  const [escaped, encoded] = [encodeURIComponent(content.toWellFormed()), Buffer.from(content).toString('base64')];
  return escaped.length <= encoded.length + ';base64'.length ? `data:,${escaped}` : `data:;base64,${encoded}`;
}
