import { runProgram } from '../machinist/command-line.ts';

await runProgram('machine-controller-manager', process.argv.slice(2));
