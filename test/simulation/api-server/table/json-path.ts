import { memberOf } from '../json.ts';

/** One step of a JSONPath: a member, or the first element of a list that has a member of this value. */
type Step = string | { readonly member: string; readonly value: string };

/** A name, with its dots behind backslashes, or a filter such as `[?(@.type=="Ready")]`. */
const STEP = /\.(?<name>(?:\\.|[^.[\\])+)|\[\?\(@\.(?<member>\w+)==(?<quote>["'])(?<value>[^"']*)\k<quote>\)\]/y;

/**
 * The function that reads a value by a JSONPath as columns of CustomResourceDefinitions have it: names, and filters of lists by one member.
 * Throws for any other path.
 */
export function jsonPathOf(text: string): (value: unknown) => unknown {
  const steps = stepsOf(text);
  return (value) => steps.reduce<unknown>(next, value);
}

function stepsOf(text: string): readonly Step[] {
  const steps: Step[] = [];
  STEP.lastIndex = 0;
  let end = 0;
  for (let match = STEP.exec(text); match !== null; match = STEP.exec(text)) {
    const { name, member = '', value = '' } = match.groups ?? {};
    steps.push(name === undefined ? { member, value } : name.replaceAll('\\', ''));
    end = STEP.lastIndex;
  }
  if (end !== text.length || steps.length === 0)
    throw new Error(`${text} is more than names and filters by one member`);
  return steps;
}

function next(value: unknown, step: Step): unknown {
  if (typeof step === 'string') return memberOf(value, step);
  if (!Array.isArray(value)) return undefined;
  return value.find((element) => memberOf(element, step.member) === step.value);
}
