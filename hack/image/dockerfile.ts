/** One instruction of a Dockerfile. */
export interface Instruction {
  /** `COPY`, `RUN`, … */
  readonly name: string;
  /** All after the name, continued lines joined. */
  readonly text: string;
}

/** What a Dockerfile makes between two FROM. */
export interface Stage {
  readonly base: string;
  readonly name: string;
  readonly steps: readonly Instruction[];
}

/** The stages of a Dockerfile, by the rules of its reference as far as ours needs them. Throws Error for a stage without name. */
export function stagesOf(dockerfile: string): Stage[] {
  const lines = dockerfile.replaceAll(/^\s*#.*\n/gm, '').replaceAll(/\\\n\s*/g, '');
  const instructions = [...lines.matchAll(/^([A-Z]+) +(.*)$/gm)].map(([, name = '', text = '']) => ({ name, text }));
  const stages: (Stage & { steps: Instruction[] })[] = [];
  for (const instruction of instructions) {
    if (instruction.name !== 'FROM') {
      stages.at(-1)?.steps.push(instruction);
      continue;
    }
    const [, base, name] = /^(\S+) AS (\S+)$/.exec(instruction.text) ?? [];
    if (base === undefined || name === undefined)
      throw new Error(`FROM ${instruction.text}: AS and a name are expected`);
    stages.push({ base, name, steps: [] });
  }
  return stages;
}
