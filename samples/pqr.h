/* Reads PQR files, in which pdb2pqr hands molecules to APBS: positions and radii in Angstrom, charges in e. */
#ifndef PQR_H
#define PQR_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct atom { double r[3], charge, radius; };
struct molecule { int atoms; struct atom *atom; };

/* A line of five numbers in the end: x y z charge radius. What stands before them varies (some files have a chain). */
static inline int pqr_line(char *line, struct atom *atom)
{
    char *word[32], *end;
    double value[5];
    int words = 0;
    for (char *w = strtok(line, " \t\r\n"); w && words < 32; w = strtok(NULL, " \t\r\n")) word[words++] = w;
    if (words < 8) return 0;
    for (int m = 0; m < 5; m++) {
        value[m] = strtod(word[words - 5 + m], &end);
        if (*end || !isfinite(value[m])) return 0;
    }
    *atom = (struct atom){{value[0], value[1], value[2]}, value[3], value[4]};
    return 1;
}

/* Ends the program with a message where the file is not a PQR file. The caller frees the atoms. */
static inline struct molecule pqr_read(const char *path)
{
    struct molecule molecule = {0, NULL};
    char line[512];
    const char *wrong = NULL;
    int number = 0;
    FILE *file = fopen(path, "r");
    if (!file) wrong = "cannot be opened";
    while (!wrong && fgets(line, sizeof line, file)) {
        number++;
        if (strncmp(line, "ATOM", 4) && strncmp(line, "HETATM", 6)) continue;
        struct atom *more = realloc(molecule.atom, (molecule.atoms + 1) * sizeof *more);
        if (more) molecule.atom = more;
        if (!more) wrong = "no memory";
        else if (!pqr_line(line, &more[molecule.atoms++])) wrong = "the line does not end in x y z charge radius";
    }
    if (!wrong && molecule.atoms == 0) wrong = "no line begins with ATOM or HETATM";
    if (file) fclose(file);
    if (wrong) {
        fprintf(stderr, "%s:%d: %s\n", path, number, wrong);
        exit(2);
    }
    return molecule;
}

#endif
